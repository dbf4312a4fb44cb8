"""An answer while it is written: what stands there stays, and long ones cost no more than short ones."""

from page_case import PageCase, needs_mock

# A text that grows by `piece`s, in a view of its own; counts the nodes that are made for it.
GROWING = """
    const {MarkdownView} = await import('./markdown.js');
    const {colouredPainter, plainPainter} = await import('./painter.js');
    const made = {nodes: 0};
    for (const name of ['createElement', 'createElementNS', 'createTextNode']) {
      const original = document[name].bind(document);
      document[name] = (...given) => { ++made.nodes; return original(...given); };
    }
    class Growing {
      constructor() {
        this.node = document.createElement('div');
        this.node.className = 'markdown';
        document.querySelector('#messages').append(this.node);
        this.view = new MarkdownView(this.node);
        this.source = '';
        this.spans = [];
        this.tokens = 0;
      }
      add(piece) {
        this.source += piece;
        const by = ++this.tokens % 3 ? 'suffix' : 'target';
        if (this.spans.at(-1)?.[0] === by) this.spans.at(-1)[1] += piece.length;
        else this.spans.push([by, piece.length]);
        this.view.update(this.source, colouredPainter(this.spans));
      }
    }
"""


class GrowingTest(PageCase):
    def evaluate(self, script, argument=None):
        self.open()
        return self.page.evaluate(f"async (argument) => {{ {GROWING} {script} }}", argument)

    def test_a_selection_in_what_is_being_written_stays(self):
        lost = self.evaluate("""
            const lost = [];
            for (const begin of ['```js\\n', '', '- ', '> ', '1. one\\n2. ', '| a | b |\\n|---|---|\\n| ',
                                 '- x\\n\\n  ```\\n  ', '**', '$$\\n', '    ']) {
              const growing = new Growing();
              growing.add(begin);
              for (let i = 0; i < 5; ++i) growing.add(`word${i} `);
              const texts = document.createTreeWalker(growing.node, NodeFilter.SHOW_TEXT);
              while (!texts.nextNode().data.includes('word3'));
              const node = texts.currentNode;
              const at = node.data.indexOf('word3');
              getSelection().setBaseAndExtent(node, at, node, at + 5);
              for (let i = 5; i < 30; ++i) growing.add(`word${i} `);
              if (String(getSelection()) !== 'word3') lost.push(begin, String(getSelection()));
            }
            return lost;
        """)
        self.assertEqual(lost, [])

    @needs_mock
    def test_code_that_is_being_written_can_be_copied_and_stays_scrolled(self):
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.mock.hold_at = 60
        self.open()
        self.send("merge")
        figure = self.page.locator("figure.code").first
        self.until(lambda: "result" in figure.inner_text(), "some code")
        self.page.evaluate("""() => {
            window.button = document.querySelector('figure.code button');
            document.querySelector('figure.code pre').style.width = '80px';
            document.querySelector('figure.code pre').scrollLeft = 30;
        }""")
        box = figure.get_by_label("Copy code").bounding_box()
        self.page.mouse.move(box["x"] + 5, box["y"] + 5)
        self.page.mouse.down()  # and more is written before the button is let go
        self.mock.hold_at = None
        self.mock.go.set()
        self.ended()
        self.page.mouse.up()
        self.page.wait_for_selector("[aria-label='Copy code'] path[d='M3 8.5l3.2 3.2L13 5']")
        self.assertTrue(self.page.evaluate(
            "window.button === document.querySelector('figure.code button')"))
        self.assertEqual(self.page.evaluate("document.querySelector('figure.code pre').scrollLeft"), 30)
        self.assertEqual(self.page.evaluate("navigator.clipboard.readText()"),
                         figure.locator("pre").text_content())

    def test_a_long_block_takes_no_more_for_a_token_than_a_short_one(self):
        made = self.evaluate("""
            const result = {};
            for (const [name, begin, pieces] of [
                ['code', '```js\\n', ['let ', 'value', ' = ', '17', ';\\n']], ['paragraph', '', ['a ', 'few ', 'words, ']],
                ['list', '- one\\n', ['- ', 'two ', 'of ', 'them\\n']], ['quote', '> ', ['said ', 'so\\n', '> ']],
                ['table', '| a | b |\\n|---|---|\\n', ['| ', '17 ', '| ', '4 ', '|\\n']]]) {
              const growing = new Growing();
              growing.add(begin);
              const last = [];
              for (const tokens of [1000, 10_000]) {
                while (growing.tokens < tokens - 100) {
                  const more = pieces[growing.tokens % pieces.length];
                  // Few updates on the way there: a test takes its time, too.
                  growing.source += more;
                  growing.spans.push([['target', 'suffix'][++growing.tokens % 2], more.length]);
                }
                growing.view.update(growing.source, colouredPainter(growing.spans));
                made.nodes = 0;
                while (growing.tokens < tokens) growing.add(pieces[growing.tokens % pieces.length]);
                last.push(made.nodes);
              }
              result[name] = last;
              growing.node.remove();
            }
            return result;
        """)
        for name, (short, long) in made.items():
            with self.subTest(name):
                self.assertLess(short, 1000, "nodes for 100 tokens")
                self.assertLessEqual(long, 2 * short)

    def test_a_huge_paragraph_takes_no_more_for_a_token_than_a_long_one(self):
        looked, longest, together, count = self.evaluate("""
            let looked = 0;
            const {exec} = RegExp.prototype;
            RegExp.prototype.exec = function (text) { ++looked; return exec.call(this, text); };
            const growing = new Growing();
            const grow = (piece, length) => {
              looked = 0;
              for (let at = 0; at < length; at += piece.length) growing.add(piece);
              return looked;
            };
            const counts = [];
            for (const length of [20_000, 200_000]) {
              const more = length - growing.source.length - 8_000;
              growing.source += '**some** words '.repeat(more / 15);
              growing.spans.push(['target', growing.source.length - growing.spans.reduce((n, [, m]) => n + m, 0)]);
              growing.view.update(growing.source, colouredPainter(growing.spans));
              counts.push(grow('**some** words ', 8_000));
            }
            // What is laid out together.
            const together = [...growing.node.querySelectorAll('.part')].map((part) => part.textContent.length);
            // Of one word that does not end, in a paragraph and in code.
            const lengths = [];
            for (const begin of ['', '```\\n']) {
              const one = new Growing();
              one.add(begin);
              for (let i = 0; i < 4000; ++i) one.view.update(one.source += 'letters', plainPainter);
              const texts = document.createTreeWalker(one.node, NodeFilter.SHOW_TEXT);
              while (texts.nextNode()) lengths.push(texts.currentNode.length);
            }
            return [counts, Math.max(...lengths), Math.max(...together), together.length];
        """)
        self.assertLess(looked[1], 2 * looked[0])
        self.assertGreater(count, 20)
        self.assertLessEqual(together, 8000)
        self.assertLess(longest, 2000, "characters of a node, which the browser shapes together")

    def test_a_huge_paragraph_that_grew_is_shown_as_the_whole_is(self):
        result = self.evaluate("""
            const pieces = ['lorem ipsum '.repeat(90), '\\u6587\\u5B57\\u3002'.repeat(300), 'x'.repeat(2500), '**', '*',
              '`', '_', '$', '[', '](https://a.b)', '(', '\\\\(', '\\\\)', '  \\n', '\\n', ' ', '~~',
              ' '.repeat(500), '\\u{1F600}'.repeat(700), 'alpha beta '];
            let seed = argument;
            const next = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
            const words = (text) => text.match(/lorem|alpha|\\u6587/g)?.length ?? 0;
            for (let round = 0; round < 40; ++round) {
              let source = 'a ';
              const grown = document.createElement('div');
              const view = new MarkdownView(grown);
              for (let i = 10 + next(60); i >= 0; --i) {
                const piece = pieces[next(pieces.length)];
                const cut = next(piece.length);  // in two updates
                for (const part of [piece.slice(0, cut), piece.slice(cut)]) {
                  view.update(source += part, plainPainter);
                }
                const whole = document.createElement('div');
                new MarkdownView(whole).update(source, plainPainter);
                if (whole.innerHTML !== grown.innerHTML || words(whole.textContent) !== words(source)) {
                  return {source, whole: whole.innerHTML, grown: grown.innerHTML};
                }
              }
            }
            return null;
        """, 20_261_128)
        self.assertIsNone(result)

    def test_a_text_that_grew_is_shown_as_the_whole_is(self):
        """Random pieces, such as models write: each step is compared with the text shown anew."""
        result = self.evaluate("""
            const pieces = ['alpha', ' ', '\\n', '\\n', '\\n\\n', '**', '*', '_', '`', '```', '\\n```\\n', '# ',
              '- ', '-', '1', '. ', '> ', '| a | b |', '\\n|---|---|\\n', '|', '[x](https://a.b)', '\\\\',
              '  ', '    ', 'beta', '<br>', '&amp;', '---\\n', '--', '==', '\\\\(', '\\\\)', '\\\\[\\n', '\\\\]', '$$',
              '$', '- [ ] ', '[x] ', '\\u{1F600}', '\\n- ', '\\n  - ', '\\n1. ', 'https://c.d/e'];
            let seed = argument;
            const next = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
            // Whose each character is: what of it is in one node depends on when it came.
            const colours = (node) => {
              const list = [];
              const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
              while (walker.nextNode()) {
                const {data, parentNode: {className}} = walker.currentNode;
                for (const char of data) list.push(char + (className.includes('guess') ? className : ''));
              }
              return list.join('|');
            };
            for (let round = 0; round < 400; ++round) {
              let source = '';
              const spans = [];
              const grown = [document.createElement('div'), document.createElement('div')];
              const views = grown.map((node) => new MarkdownView(node));
              for (let i = next(40); i >= 0; --i) {
                const piece = pieces[next(pieces.length)];
                source += piece;
                const by = next(2) ? 'target' : 'suffix';
                if (spans.at(-1)?.[0] === by) spans.at(-1)[1] += piece.length;
                else spans.push([by, piece.length]);
                if (next(4) === 0) continue;  // several pieces in one update
                const [plain, coloured] = [document.createElement('div'), document.createElement('div')];
                views[0].update(source, plainPainter);
                new MarkdownView(plain).update(source, plainPainter);
                if (plain.innerHTML !== grown[0].innerHTML) {
                  return {source, whole: plain.innerHTML, grown: grown[0].innerHTML};
                }
                views[1].update(source, colouredPainter(spans));
                new MarkdownView(coloured).update(source, colouredPainter(spans));
                if (colours(coloured) !== colours(grown[1])) {
                  return {source, whole: coloured.innerHTML, grown: grown[1].innerHTML};
                }
              }
            }
            return null;
        """, 20_261_128)
        self.assertIsNone(result)
