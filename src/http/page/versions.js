// Versions of a conversation's end. "Answer again" and an edited question put something new in the
// place of a message and of all behind it; what was there stays, to be looked at and gone on with.
//
// The message where they part has `versions`, {at, tails}: a tail is all messages from there on, and
// the one that is shown, number `at`, is null, as the conversation itself holds it. Messages in a tail
// may have versions of their own. So nothing else needs to know of them: what is shown is one list.

/** Whether something was said: an answer that failed or was stopped at once is none. */
export function hasText({role, content, reasoning, toolCalls}) {
  return role !== "assistant" || content !== "" || Boolean(reasoning) || toolCalls?.length > 0;
}

/**
 * Puts `tail` in the place of message `index` and all behind it. What was there becomes another
 * version, if anything was said in it. Returns that tail, or null.
 */
export function replaceTail(messages, index, tail) {
  const old = messages.splice(index, Infinity, ...tail);
  if (old.length === 0) return null;
  const versions = old[0].versions ?? {at: 0, tails: [null]};
  delete old[0].versions;
  const kept = old.some(hasText);
  if (kept) {
    versions.tails[versions.at] = old;
    versions.at = versions.tails.push(null) - 1;
  }
  if (versions.tails.length > 1) tail[0].versions = versions;
  return kept ? old : null;
}

/** Shows the version with number `which` of message `index`; whether there is one to show. */
export function showVersion(messages, index, which) {
  const versions = messages[index]?.versions;
  const tail = versions?.tails[which];
  if (!tail) return false;
  const old = messages.splice(index, Infinity, ...tail);
  delete old[0].versions;
  versions.tails[versions.at] = old;
  versions.tails[which] = null;
  versions.at = which;
  messages[index].versions = versions;
  return true;
}

/** Shows `tail`, which `replaceTail` returned; whether it is still there. */
export function showTail(messages, index, tail) {
  return showVersion(messages, index, messages[index]?.versions?.tails.indexOf(tail) ?? -1);
}

/**
 * Removes the version of message `index` that begins with `first`. If it was shown, `tail` is shown in
 * its place, or without that the one before. Whether it was there, and not the only one.
 */
export function dropVersion(messages, index, first, tail) {
  const versions = messages[index]?.versions;
  if (!versions) return false;
  if (messages[index] === first && !showTail(messages, index, tail)) {
    showVersion(messages, index, versions.at > 0 ? versions.at - 1 : 1);
  }
  const which = versions.tails.findIndex((one) => one?.[0] === first);
  if (which < 0) return false;
  versions.tails.splice(which, 1);
  if (versions.at > which) --versions.at;
  if (versions.tails.length === 1) delete messages[index].versions;
  return true;
}

function saidFrom(messages, from, {shownOnly, skip = -1}) {
  const said = [];
  for (let i = from; i < messages.length; ++i) {
    const {role, content, toolCalls, versions} = messages[i];
    if (versions?.tails?.length > 1 && i !== skip && !shownOnly) {
      return [...said, versions.tails.map((tail) => tail ? saidFrom(tail, 0, {})
        : saidFrom(messages, i, {skip: i}))];
    }
    if (role === "system") continue;
    said.push([role, content, (toolCalls ?? []).map(({name, arguments: given}) => [name, given])]);
  }
  return said;
}

/** All that was said in `messages`, as a text to be compared: whichever version is shown of each. */
export function allSaid(messages) {
  return JSON.stringify(saidFrom(messages, 0, {}));
}

/** The same of what is shown. */
export function shownSaid(messages) {
  return JSON.stringify(saidFrom(messages, 0, {shownOnly: true}));
}
