import assert from 'node:assert/strict'

/** Somebody else's calls to a service, made beside the browser. */
export class Api {
  readonly #url: string
  readonly #token: string

  private constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  static async logIn(url: string, username: string, password: string): Promise<Api> {
    const response = await fetch(`${url}/api/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password }),
    })
    assert.equal(response.status, 200, `log in as ${username}`)
    return new Api(url, JSON.parse(await response.text()).access_token)
  }

  /** The JSON of a successful answer. */
  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const isForm = body instanceof FormData
    const response = await fetch(this.#url + path, {
      method,
      headers: {
        ...headers,
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }

  /** Deletes every record of that name. */
  async removeRecords(domain: string, name: string) {
    const path = `/api/domains/${domain}/dns/hosts`
    const { hosts }: { hosts: { id: string; name: string }[] } = await this.call('GET', path)
    for (const host of hosts.filter((each) => each.name === name)) {
      await this.call('DELETE', `${path}/${host.id}`)
    }
  }

  async upload(path: string, content: string) {
    const form = new FormData()
    form.append('path', path)
    form.append('file', new Blob([content]), path.replace(/^.*\//, ''))
    await this.call('POST', '/api/files/upload', form)
  }
}
