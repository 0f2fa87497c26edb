// The one import of lit-html: its URL is served from the installed package.
export { html, nothing, render, svg } from '../vendor/lit-html.js'
