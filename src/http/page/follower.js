// Keeps the end of a growing text in sight, as long as the person who reads it is there. Whoever
// scrolls up, however little, stays where they are; at the end again, they are taken along again.

const kAtEnd = 24;  // pixels: who scrolls down to here is at the end

export class Follower {
  #following = true;
  #top = 0;  // where it was last, so that a move up is told from a text that grew

  /** `toEnd`: the button that leads back; it is shown while the end is not. */
  constructor(scroller, toEnd) {
    this.scroller = scroller;
    this.toEnd = toEnd;
    toEnd.addEventListener("click", () => this.toTheEnd());
    scroller.addEventListener("wheel", ({deltaY}) => {
      // Before the first scroll event of a smooth scroll, which may move by a fraction of a pixel.
      if (deltaY < 0 && scroller.scrollTop > 0) this.#following = false;
    }, {passive: true});
    scroller.addEventListener("scroll", () => this.#scrolled(), {passive: true});
    // A panel that opens makes lines shorter, a keyboard on a phone takes room: the end stays.
    new ResizeObserver(() => this.grown()).observe(scroller);
  }

  get #left() {
    const {scrollTop, scrollHeight, clientHeight} = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #scrolled() {
    const top = this.scroller.scrollTop;
    // At the end a move up is the browser's: what is shown has become shorter.
    if (top < this.#top) this.#following &&= this.#left <= 1;
    else if (top > this.#top && this.#left < kAtEnd) this.#following = true;
    this.#top = top;
    this.#showButton();
  }

  /** The text, or the room for it, has changed. */
  grown() {
    if (this.#following) this.#toEnd();
    this.#showButton();
  }

  toTheEnd() {
    this.#following = true;
    this.grown();
  }

  /** Another place than the end is shown. */
  leave() {
    this.#following = false;
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#top = this.scroller.scrollTop;
  }

  #showButton() {
    this.toEnd.hidden = this.#following || this.#left < 40;
  }
}
