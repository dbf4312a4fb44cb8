"""Text of a model on the page: nothing of it is markup, none of it is lost, none of it hangs."""

from mock_texts import EMOJI
from page_case import PageCase, needs_mock


class SafetyTest(PageCase):
    @needs_mock
    def test_markup_in_an_answer_is_text(self):
        self.open()
        for coloured in (True, False):
            answer = self.ask("hostile")
            shown = answer.locator(".markdown")
            self.assertIn("<script>window.hacked=2</script>", shown.inner_text())
            self.assertEqual(shown.locator("script, img, iframe, svg:not(.icon)").count(), 0)
            for link in shown.locator("a").all():
                self.assertRegex(link.get_attribute("href"), "^https?://")
                self.assertIn("noopener", link.get_attribute("rel"))
            handlers = shown.evaluate("""(node) => [...node.querySelectorAll('*')]
                .flatMap((e) => [...e.attributes]).filter((a) => a.name.startsWith('on')).length""")
            self.assertEqual(handlers, 0)
            self.assertIsNone(self.page.evaluate("window.hacked ?? null"))
            if coloured:
                self.page.click("#colours")

    def test_markup_in_a_prompt_and_in_a_name_is_text(self):
        self.open()
        hostile = "<img src=x onerror='window.hacked=1'>\"><b>x</b>"
        self.ask(hostile)
        self.assertEqual(self.text(".user .bubble"), hostile)
        self.assertEqual(self.text(".conversation-list .name"), hostile)
        self.page.locator(".conversation-list .name").dblclick()
        self.page.fill(".rename", "<script>window.hacked=2</script>")
        self.page.press(".rename", "Enter")
        self.assertEqual(self.text(".conversation-list .name"), "<script>window.hacked=2</script>")
        self.page.reload()
        self.page.wait_for_selector(".assistant")
        self.assertEqual(self.text(".conversation-list .name"), "<script>window.hacked=2</script>")
        self.assertIsNone(self.page.evaluate("window.hacked ?? null"))

    def test_the_policy_forbids_inline_scripts_and_other_servers(self):
        response = self.page.goto(self.url)
        policy = response.headers.get("content-security-policy", "")
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'",
                     "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'",
                     "form-action 'none'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.page.evaluate("""() => { const s = document.createElement('script');
            s.textContent = 'window.hacked = 1'; document.body.append(s); }""")
        self.assertIsNone(self.page.evaluate("window.hacked ?? null"))
        self.problems = [p for p in self.problems if "Content Security Policy" not in p]

    @needs_mock
    def test_a_hostile_store_does_not_end_the_page(self):
        self.open()
        self.page.evaluate("""async () => {
            localStorage.setItem('outrider.settings', '{"temperature": 3, "drafters": [1], "colours": "x"}');
            const db = await new Promise((done) => {
              indexedDB.open('outrider').onsuccess = (e) => done(e.target.result); });
            const store = db.transaction('conversations', 'readwrite').objectStore('conversations');
            store.put({id: 'a'}); store.put({id: 'b', messages: [{content: 5}]});
        }""")
        self.page.reload()
        self.ask("Explain")
        self.assertNotIn("temperature", self.bodies[-1])


class PlainHttpTest(PageCase):
    """From another machine of the network, without https: the page has no navigator.clipboard."""
    arguments = ("--host-resolver-rules=MAP outrider.test 127.0.0.1",)

    @property
    def url(self):
        return super().url.replace("127.0.0.1", "outrider.test")

    @needs_mock
    def test_an_answer_is_copied_and_what_was_selected_stays(self):
        self.open()
        self.assertFalse(self.page.evaluate("isSecureContext"))
        answer = self.ask("emoji")
        self.page.evaluate("getSelection().selectAllChildren(document.querySelector('.markdown p'))")
        selected = self.page.evaluate("String(getSelection())")
        copy = answer.get_by_label("Copy")
        copy.click()
        self.page.wait_for_selector("[aria-label=Copy] path[d='M3 8.5l3.2 3.2L13 5']")
        self.assertEqual(self.page.evaluate("String(getSelection())"), selected)
        self.assertEqual(self.page.evaluate("document.activeElement.ariaLabel"), "Copy")
        self.assertEqual(self.page.locator("body > textarea").count(), 0)
        copy.click()  # again, while it shows that it did
        self.until(lambda: "M5.5 5.5h7.5v8" in copy.locator("path").get_attribute("d"),
                   "its own sign again")
        self.page.focus("#prompt")
        self.page.keyboard.press("Control+V")
        self.assertEqual(self.page.input_value("#prompt"), EMOJI)


class MarkdownTest(PageCase):
    @needs_mock
    def test_blocks_become_their_elements(self):
        self.open()
        shown = self.ask("planets").locator(".markdown")
        self.assertEqual(shown.locator("h3").inner_text(), "The planets")
        self.assertEqual(shown.locator("tbody tr").count(), 4)
        self.assertEqual(shown.locator("tbody td").nth(1).inner_text(), "4,879")
        self.assertIn("align-right", shown.locator("tbody td").nth(1).get_attribute("class"))
        self.assertEqual(shown.locator("li li").all_inner_texts(), ["Mercury, Venus", "Earth, Mars"])
        self.assertEqual(shown.locator("blockquote em").inner_text(), "new ones")
        self.assertEqual(shown.locator("del").inner_text(), "nine")

    def html(self, source):
        """What the page makes of a source, without what says how it is laid out."""
        return self.page.evaluate("""async (source) => {
            const {MarkdownView} = await import('./markdown.js');
            const {plainPainter} = await import('./painter.js');
            const shown = document.createElement('div');
            new MarkdownView(shown).update(source, plainPainter);
            for (const node of shown.querySelectorAll('[dir], [tabindex]')) {
              node.removeAttribute('dir');
              node.removeAttribute('tabindex');
            }
            return shown.innerHTML;
        }""", source)

    def test_maths_stays_as_it_was_written(self):
        self.open()
        math = '<code class="math">{}</code>'.format
        for source, shown in {
                r"So \(a^2_1 * b_2\) is": "<p>So " + math(r"\(a^2_1 * b_2\)") + " is</p>",
                r"Both $x_1$ and $$y_1$$.": "<p>Both " + math("$x_1$") + " and " + math("$$y_1$$") + ".</p>",
                "It costs $5, or $10 with *tax*.": "<p>It costs $5, or $10 with <em>tax</em>.</p>",
                r"An \(open one": "<p>An (open one</p>"}.items():
            self.assertEqual(self.html(source), shown)
        for source in ("\\[\n- a^2_1\n= *b*\n\\]", "$$\n\\frac{a_1}{b_1}\n$$", "\\[ x_1 * y_1 \\]"):
            shown = self.html(f"So:\n{source}\nand *on*")
            self.assertEqual(shown, '<p>So:</p><pre class="math"><span class="part">' + source +
                             "</span></pre><p>and <em>on</em></p>")

    def test_forms_that_models_write_become_their_elements(self):
        self.open()
        for source, shown in {
                "Title\n===\nText": "<h2>Title</h2><p>Text</p>",
                "Two\nlines\n---": "<h3>Two\nlines</h3>",
                "&lt;b&gt; &amp; &#8364; &unknown;": "<p>&lt;b&gt; &amp; € &amp;unknown;</p>",
                "`&lt;`": "<p><code>&amp;lt;</code></p>"}.items():
            self.assertEqual(self.html(source), shown)
        self.assertIn("<td class=\"align-left\">1<br>2</td>",
                      self.html("| a | b |\n|---|---|\n| 1<br>2 | 3<br/>4 |"))
        tasks = self.html("- [x] done\n- [ ] not [x] yet\n- [no]")
        self.assertEqual(tasks.count("<input"), 2)
        self.assertEqual(tasks.count('checked=""'), 1)
        self.assertIn("not [x] yet", tasks)
        self.assertIn("<li>[no]</li>", tasks)

    @needs_mock
    def test_text_from_right_to_left_is_laid_out_so(self):
        self.open()
        answer = self.ask("\u05e9\u05dc\u05d5\u05dd hebrew")
        direction = "(node) => getComputedStyle(node).direction"
        self.assertEqual(self.page.locator(".bubble").evaluate(direction), "rtl")
        for selector, wanted in {"p >> nth=0": "rtl", "ul": "rtl", "figure.code": "ltr",
                                 "p >> nth=1": "ltr"}.items():
            self.assertEqual(answer.locator(f".markdown > {selector}").evaluate(direction), wanted)

    @needs_mock
    def test_code_is_shown_as_written_and_copied_whole(self):
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.open()
        shown = self.ask("merge").locator(".markdown")
        code = shown.locator("figure.code").first
        self.assertEqual(code.locator("figcaption span").inner_text(), "python")
        self.assertTrue(code.locator("pre").text_content().startswith("def merge(left, right):\n    "))
        code.get_by_label("Copy code").click()
        copied = self.page.evaluate("navigator.clipboard.readText()")
        self.assertEqual(copied, code.locator("pre").text_content())

    @needs_mock
    def test_copying_that_the_browser_refuses_is_said(self):
        self.page.add_init_script("""Object.defineProperty(navigator, 'clipboard', {value: undefined});
            document.execCommand = () => false;""")
        self.open()
        copy = self.ask("emoji").get_by_label("Copy")
        copy.click()
        self.assertEqual(copy.inner_text(), "Not possible here")

    def test_every_source_keeps_its_characters(self):
        """Random pieces of markdown: no character of a word is lost or doubled, nothing hangs."""
        self.open()
        result = self.page.evaluate("""async () => {
            const {MarkdownView} = await import('./markdown.js');
            const {colouredPainter, plainPainter} = await import('./painter.js');
            const pieces = ['alpha', ' ', '\\n', '\\n\\n', '**', '*', '_', '~~', '`', '```\\n', '# ',
              '- ', '1. ', '> ', '| a | b |\\n|---|---|\\n', '[x](https://a.b)', '[', ']', '(', ')',
              '\\\\', '  ', '    ', 'beta', '<b>', 'https://c.d/e_f', '---\\n', '\\u{1F600}'];
            let seed = 12345;
            const next = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
            const words = (text) => text.match(/alpha|beta/g)?.length ?? 0;
            for (let round = 0; round < 1500; ++round) {
              let source = '';
              for (let i = next(40); i >= 0; --i) source += pieces[next(pieces.length)];
              const spans = [];
              for (let left = source.length; left > 0;) {
                const n = Math.min(left, 1 + next(6));
                spans.push([next(2) ? 'target' : 'suffix', n]);
                left -= n;
              }
              const texts = [plainPainter, colouredPainter(spans)].map((paint) => {
                const div = document.createElement('div');
                new MarkdownView(div).update(source, paint);
                return div.textContent;
              });
              const grown = document.createElement('div');
              const view = new MarkdownView(grown);
              for (let n = 0; n < source.length; n += 3) view.update(source.slice(0, n), plainPainter);
              view.update(source, plainPainter);
              if (texts[0] !== texts[1] || texts[0] !== grown.textContent) {
                return {source, texts, grown: grown.textContent};
              }
              // A table drops cells that its header has no column for, a fence's first line is its
              // language.
              if (!source.includes('|') && !source.includes('```') &&
                  words(texts[0]) !== words(source)) return {source, texts};
            }
            return null;
        }""")
        self.assertIsNone(result)

    def test_long_and_nested_sources_are_shown(self):
        # What took time by the square of the length took minutes, so this one did not end.
        self.open()
        empty = self.page.evaluate("""async () => {
            const {MarkdownView} = await import('./markdown.js');
            const {plainPainter} = await import('./painter.js');
            const empty = [];
            for (const piece of ['[', '*a ', '**a', '`', '> ', '- ', '![', '[a](', '_a_', '|', '~~a',
                                 '[[', '](', 'https://', '\\\\', '# ', '1. ', '  - a\\n', '\\n']) {
              const shown = document.createElement('div');
              new MarkdownView(shown).update(piece.repeat(20000 / piece.length), plainPainter);
              if (shown.childNodes.length === 0 && piece.trim() !== '') empty.push(piece);
            }
            return empty;
        }""")
        self.assertEqual(empty, [])

    def test_blanks_without_end_are_read_at_once(self):
        # A heading with a thousand of them stopped the page, by the cube of their number.
        self.open()
        shown = self.page.evaluate("""async () => {
            const {MarkdownView} = await import('./markdown.js');
            const {plainPainter} = await import('./painter.js');
            const blanks = ' '.repeat(20_000);
            return [`# a${blanks}b`, `# a${blanks}##${blanks}`, '# a# ', '# #', '## a#', '```' + blanks + '`',
                    `a${blanks}b`, `| a${blanks}|${blanks}b |`, `- a${blanks}b`].map((source) => {
              const shown = document.createElement('div');
              new MarkdownView(shown).update(source, plainPainter);
              return shown.textContent.replace(/ +/g, ' ');
            });
        }""")
        self.assertEqual(shown, ["a b", "a", "a#", "", "a#", "``` `", "a b", "| a | b |", "a b"])


class AnswerTest(PageCase):
    @needs_mock
    def test_the_legend_counts_what_is_seen(self):
        self.mock.end_token = "mtp"
        self.open()
        self.assertNotIn("mtp", self.ask("Explain").locator(".legend").inner_text())

    def test_coloured_words_stand_on_the_line_of_their_neighbours(self):
        self.open()
        padding = self.page.evaluate("""() => {
            const word = document.createElement('span');
            word.className = 'guess';
            document.body.append(word);
            return getComputedStyle(word).paddingTop;
        }""")
        self.assertRegex(padding, r"^\d+px$", "what is no whole pixel shifts the word")

    def test_a_piece_of_text_is_given_to_the_tokens_it_came_from(self):
        self.open()
        failed = self.page.evaluate("""async () => {
            const {Aligner} = await import('./answer.js');
            const cases = [
              // [tokens and texts as they arrive, what is to come out]
              [[[['a', ' one'], ['b', ' two']], ' one two'], [['a', 4], ['b', 4]]],
              // A character cut over three tokens.
              [[[['a', '\\uFFFD'], ['a', '\\uFFFD'], ['b', '\\uFFFD']], '\\u{1F600}', [['c', '!']], '!'],
               [['a', 2], ['c', 1]]],
              // Held back as it could become a stop string, then said.
              [[[['a', 'ab']], 'a', [['b', 'c']], 'bc'], [['a', 1], ['a', 1], ['b', 1]]],
              // A marker that is no content.
              [[[['a', '<think>'], ['b', 'so']], 'so'], [['b', 2]]],
              // Text without tokens.
              [['alone'], [['target', 5]]],
            ];
            return cases.filter(([steps, wanted]) => {
              const aligner = new Aligner();
              const pieces = [];
              for (const step of steps) {
                if (typeof step === 'string') pieces.push(...aligner.text(step));
                else aligner.tokens(step.map(([by, text]) => ({by, text})));
              }
              return JSON.stringify(pieces) !== JSON.stringify(wanted);
            });
        }""")
        self.assertEqual(failed, [])
