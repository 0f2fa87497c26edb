import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CallFailed } from '../../src/registrar/call-failed.ts'
import { childOf, childrenOf, type Element } from '../../src/registrar/responses.ts'
import { parseResponse } from '../../src/registrar/transport.ts'

const wrap = (inner: string) =>
  `<?xml version="1.0" encoding="utf-8"?>\r\n<ApiResponse Status="OK">${inner}</ApiResponse>`

const addressOf = (written: string) =>
  childOf(parseResponse(wrap(`<host Address="${written}" />`)), 'host')?.attributes.Address

test.each([
  ['a number stays a text', '1e3', '1e3'],
  ['leading zeros stay', '007', '007'],
  ['spaces stay', '  v=spf1  ~all ', '  v=spf1  ~all '],
  ['named entities', '&lt;&gt;&amp;&quot;&apos;', `<>&"'`],
  ['numeric entities', '&#x41;&#66;&#9;&#128512;', 'AB\t\u{1f600}'],
  ['an escaped ampersand is decoded once', '&#38;amp;', '&amp;'],
  ['an escaped entity is decoded once', '&amp;lt;', '&lt;'],
  ['a tag inside a value', '1>2', '1>2'],
  ['a line end as itself is a space', 'a\nb', 'a b'],
  ['a line end as a reference is kept', 'a&#10;b', 'a\nb'],
])('an attribute: %s', (_name, written, expected) => {
  expect(addressOf(written)).toBe(expected)
})

test('texts, CDATA, comments and the case of names are read as XML says', () => {
  const root = parseResponse(wrap('<Errors><error Number="1">a &amp; <![CDATA[<b>&]]><!-- & no --></error></Errors>'))

  const [error] = childrenOf(childOf(root, 'errors'), 'Error')
  expect(error).toMatchObject({ text: 'a & <b>&', attributes: { Number: '1' } })
})

test.each([
  ['before the root', '<!-- served by a cache -->\n<ApiResponse Status="OK"></ApiResponse>'],
  ['between declaration and root', wrap('').replace('<ApiR', '<!-- a --><!----> <ApiR')],
  ['after the root', `${wrap('')}\r\n<!-- </ApiResponse> --> <!-- 12 ms -->\n`],
])('comments %s do no damage', (_where, text) => {
  expect(parseResponse(text).attributes).toEqual({ Status: 'OK' })
})

test.each([
  ['nothing', ''],
  ['a cut document that a comment closes', `${wrap('<a/>').slice(0, -3)}<!-- </ApiResponse> -->`],
  ['a comment before the XML declaration', `<!-- a -->${wrap('')}`],
  ['an open comment before the root', `<!-- ${wrap('')}`],
  ['an open comment after the root', `${wrap('')}<!-- `],
  ['dashes in a comment before the root', `<!-- a -- b -->${wrap('')}`],
  ['an open comment after the root that ends as a section', `${wrap('')}<!-- ]]>`],
  ['a DOCTYPE after a comment', `<!-- a --><!DOCTYPE x>${wrap('')}`],
  ['text', 'Too many requests'],
  ['HTML', '<!doctype html><html><body>Just a moment...</body></html>'],
  ['a cut document', wrap('<host a="1"/>').slice(0, -3)],
  ['a document cut in a value', '<ApiResponse Status="OK"><host Address="</ApiResponse>'],
  ['an unclosed element', wrap('<host>')],
  ['crossed elements', wrap('<a><b></a></b>')],
  ['a second root', `${wrap('')}<b/>${wrap('')}`],
  ['text before the root', `x${wrap('')}`],
  ['text after the root', `${wrap('')}x</ApiResponse>`],
  ['a DOCTYPE', `<!DOCTYPE x [<!ENTITY a "b">]>${wrap('&a;')}`],
  ['a DOCTYPE inside', wrap('<!DOCTYPE x>')],
  ['an unknown entity', wrap('<a b="&nbsp;"/>')],
  ['a bare ampersand', wrap('<a b="x & y"/>')],
  ['a reference to no character', wrap('<a b="&#0;"/>')],
  ['a reference to half a character', wrap('<a b="&#xd800;"/>')],
  ['the same attribute twice', wrap('<a b="1" b="2"/>')],
  ['an attribute without quotes', wrap('<a b=1/>')],
  ['a closing tag with attributes', wrap('<r></a b="1"/></r>')],
  ['text between elements', wrap('<r><a/>host b="1"/></r>')],
  ['a tag inside a value', wrap('<a b="<"/>')],
  ['a control character', wrap('<a b="\u0001"/>')],
  ['an open comment', wrap('<!-- <a/>')],
  ['an open section', wrap('<![CDATA[ <a/>')],
  ['too deep', wrap(`${'<a>'.repeat(100)}${'</a>'.repeat(100)}`)],
])('%s is refused, and not quoted', (_name, document) => {
  expect(() => parseResponse(document)).toThrow(CallFailed)
  expect(() => parseResponse(document)).not.toThrow(/moment|host|nbsp/)
})

test.each([
  ['<a b="&#0;"/>', 'refers to no character'],
  ['<a>&#xd800;</a>', 'refers to no character'],
  ['<a b="<"/>', 'has a tag inside a value'],
])('the refusal of %s says why', (inner, reason) => {
  expect(() => parseResponse(wrap(inner))).toThrow(reason)
})

describe('hostile documents', () => {
  const readOrRefuse = (document: string): Element | CallFailed => {
    try {
      return parseResponse(document)
    } catch (error) {
      if (error instanceof CallFailed) return error
      throw error
    }
  }

  test('no text makes it do anything but answer or refuse', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
        for (const document of [text, wrap(text), wrap(`<host Address="${text}"/>`)]) {
          const result = readOrRefuse(document)
          expect(result instanceof CallFailed || result.name === 'ApiResponse').toBe(true)
        }
      }),
      { numRuns: 2000 },
    )
  })

  test('a zone cut at any byte is refused, never shorter', () => {
    const zone = wrap(
      `<R>${Array.from({ length: 20 }, (_, n) => `<host Name="h${n}" Address="&quot;${n}"/>`).join('')}</R>`,
    )

    const read = Array.from({ length: zone.length }, (_, at) => readOrRefuse(zone.slice(0, at)))

    expect(read.filter((result) => !(result instanceof CallFailed))).toEqual([])
    expect(childrenOf(childOf(parseResponse(zone), 'R'), 'host')).toHaveLength(20)
  })

  test.each([
    ['nested elements', '<a>'.repeat(3_400_000)],
    ['closed nested elements', '<a>'.repeat(1_400_000) + '</a>'.repeat(1_400_000)],
    ['attributes', `<a ${Array.from({ length: 700_000 }, (_, n) => `a${n}="1"`).join(' ')}/>`],
    ['empty elements', '<a/>'.repeat(2_500_000)],
    ['open brackets', '<'.repeat(10_000_000)],
    ['open quotes', '<a b="'.repeat(1_600_000)],
    ['ampersands', '&'.repeat(10_000_000)],
    ['entities', '&amp;'.repeat(2_000_000)],
    ['open comments', '<!--'.repeat(2_500_000)],
    ['open CDATA', '<![CDATA['.repeat(1_100_000)],
    ['spaces', ' '.repeat(10_000_000)],
    ['slashes', '/'.repeat(10_000_000)],
    ['one attribute', `<a b="${'x'.repeat(10_000_000)}"/>`],
    ['one comment', `<!--${'x'.repeat(10_000_000)}-->`],
    ['one CDATA section', `<Errors><![CDATA[${'x'.repeat(10_000_000)}]]></Errors>`],
  ])('10 MiB of %s is answered or refused within 256 MiB of heap', async (_name, junk) => {
    // Beyond its limit the thread ends with ERR_WORKER_OUT_OF_MEMORY.
    const worker = new Worker(new URL('../support/parsing-worker.ts', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    })
    onTestFinished(async () => {
      await worker.terminate()
    })

    worker.postMessage(wrap(junk))
    const [result] = await once(worker, 'message')

    expect(['answered', 'refused']).toContain(result)
  })
})
