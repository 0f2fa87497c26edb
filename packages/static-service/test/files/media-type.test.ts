import { expect, test } from 'vitest'
import { nameOf } from '../../src/files/file-path.ts'
import { categories, categoryOf, contentTypeOf, isCompressible } from '../../src/files/media-type.ts'

const nothing = new Uint8Array()

test.each([
  ['image', 'a.png a.JPG a.svg a.webp a.avif a.ico a.psd'],
  ['video', 'a.mp4 a.webm a.mov a.mkv'],
  ['audio', 'a.mp3 a.wav a.ogg a.flac a.m4a'],
  ['font', 'a.woff a.woff2 a.ttf a.otf a.eot'],
  ['document', 'a.pdf a.docx a.xls a.odt a.txt a.md a.epub a.rtf README.log'],
  ['archive', 'a.zip a.tar a.tar.gz a.7z a.rar a.xz a.jar'],
  ['code', 'a.js a.css a.html a.py a.go a.java a.c a.sh a.php a.wasm'],
  ['data', 'a.json a.xml a.csv a.yaml a.toml a.sql a.geojson a.jsonl'],
  ['other', 'a.exe a.bin a. .png a'],
])('these names are of the category %s: %s', async (category, names) => {
  const found = await Promise.all(names.split(' ').map((name) => contentTypeOf(name, nothing)))

  expect(new Set(found.map(categoryOf))).toEqual(new Set([category]))
  expect(categories).toContain(category)
})

test.each([
  ['a gzip file', 'file', '1f8b0800000000000003', 'application/gzip'],
  ['a PDF', 'file', '255044462d312e370a', 'application/pdf'],
  ['an empty file', 'file', '', 'application/octet-stream'],
  ['half a header', 'file', '1f', 'application/octet-stream'],
  ['text', 'file', '68656c6c6f', 'text/plain'],
  ['text that ends inside a character', 'file', '68656cc3', 'text/plain'],
  ['Latin-1', 'file', '68e96c6c6f', 'application/octet-stream'],
  ['text with a NUL', 'file', '68006c', 'application/octet-stream'],
  ['text under an unknown extension', 'a.xyzzy', '68656c6c6f', 'application/octet-stream'],
])('without a known extension the first bytes decide: %s', async (_what, name, hex, type) => {
  expect(await contentTypeOf(name, Buffer.from(hex, 'hex'))).toBe(type)
})

test.each([
  ['README', 'text/plain'],
  ['docs/LICENSE', 'text/plain'],
  ['Makefile', 'text/plain'],
  ['a.tar.gz.sha256', 'text/plain'],
  ['SUMS.sha512', 'text/plain'],
  ['server.key', 'text/plain'],
  ['a.jsonc', 'text/plain'],
  ['a.DIFF', 'text/x-diff'],
  ['a.rs', 'text/x-rust'],
])('%s is text even when it is empty: %s', async (path, type) => {
  expect(await contentTypeOf(nameOf(path), nothing)).toBe(type)
})

test('a binary file under the name of a text file is not text', async () => {
  expect(await contentTypeOf('README', Buffer.from([0, 1, 2]))).toBe('application/octet-stream')
})

test.each(['a.ts', 'a.mts', 'a.TS'])('%s is TypeScript unless it is an MPEG stream', async (name) => {
  const stream = Buffer.alloc(188 * 3)
  for (const start of [0, 188, 376]) stream[start] = 0x47

  const types = [
    await contentTypeOf(name, Buffer.from('export const a = 1\n')),
    await contentTypeOf(name, nothing),
    await contentTypeOf(name, stream),
  ]

  expect(types).toEqual(['text/x-typescript', 'text/x-typescript', 'video/mp2t'])
  expect(categoryOf('text/x-typescript')).toBe('code')
})

test.each([
  ['text/html', true],
  ['application/json', true],
  ['image/svg+xml', true],
  ['application/wasm', true],
  ['font/ttf', true],
  ['font/woff2', false],
  ['image/png', false],
  ['video/mp4', false],
  ['application/zip', false],
  ['application/octet-stream', false],
])('whether compressing %s pays: %s', (type, expected) => {
  expect(isCompressible(type)).toBe(expected)
})
