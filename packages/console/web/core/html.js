// The one import of lit-html: its URLs are served from the installed package.
export { repeat } from '../vendor/directives/repeat.js'
export { html, nothing, render, svg } from '../vendor/lit-html.js'
