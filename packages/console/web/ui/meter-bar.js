/**
 * A horizontal bar of `fraction` (0 to 1). Decorative: the text beside it says the value. Its width is set through the
 * CSS object model, which the page's policy allows; a style attribute it would not.
 */
class MeterBar extends HTMLElement {
  connectedCallback() {
    this.setAttribute('aria-hidden', 'true')
  }

  /** @param {number} fraction */
  set fraction(fraction) {
    this.style.setProperty('--fraction', String(Math.max(0, Math.min(1, fraction))))
  }
}

customElements.define('meter-bar', MeterBar)
