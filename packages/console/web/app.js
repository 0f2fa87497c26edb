import { loadServices } from './api/transport.js'
import { html, render } from './core/view.js'

// The configuration comes first: it says which services there are.
try {
  await loadServices()
  if (location.search) {
    const { finishSingleSignOn } = await import('./login/login-form.js')
    await finishSingleSignOn()
  }
  await import('./shell/app-shell.js')
} catch {
  render(
    html`<main class="login-page"><div class="login-card" role="alert">
      <h1>This page could not be started</h1>
      <p>Its configuration or its program did not load. Reload the page to try again.</p>
    </div></main>`,
    document.body,
  )
}
