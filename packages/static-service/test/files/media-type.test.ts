import { expect, test } from 'vitest'
import {
  categories,
  categoryOf,
  contentTypeOf,
  isCompressible,
} from '../../src/files/media-type.ts'

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
  ['a gzip file', '1f8b0800000000000003', 'application/gzip'],
  ['a PDF', '255044462d312e370a', 'application/pdf'],
  ['nothing', '', 'application/octet-stream'],
  ['half a header', '1f', 'application/octet-stream'],
  ['text', '68656c6c6f', 'application/octet-stream'],
])('a name that says nothing leaves it to the first bytes: %s', async (_what, hex, type) => {
  expect(await contentTypeOf('file', Buffer.from(hex, 'hex'))).toBe(type)
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
