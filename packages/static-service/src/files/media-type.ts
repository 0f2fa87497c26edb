import { extname } from 'node:path'
import { lookup } from 'mime-types'

export const categories = ['image', 'video', 'audio', 'font', 'document', 'archive', 'code', 'data', 'other'] as const

export type Category = (typeof categories)[number]

/** Number of leading bytes of a file that `contentTypeOf` needs. */
export const headLength = 4100

/**
 * Media type of a file: from the extension of its name, else from its first bytes, else `application/octet-stream`.
 * The Content-Type that a client sends is ignored.
 */
export async function contentTypeOf(name: string, head: Uint8Array = new Uint8Array()): Promise<string> {
  const known = typeByName(name)
  if (known) return known
  const extension = extname(name).toLowerCase()
  const detected = (await detect(head)) ?? ambiguous.get(extension)
  if (detected) return detected
  const isNamedText = textNames.test(name)
  const isPlainText = extension === '' && head.length > 0
  return (isNamedText || isPlainText) && isText(head) ? 'text/plain' : 'application/octet-stream'
}

/** The media type, where the extension alone decides it. */
export function typeByName(name: string): string | undefined {
  // With the dot: the library would take a bare `html` for an extension.
  const extension = extname(name).toLowerCase()
  if (extension.length <= 1 || ambiguous.has(extension)) return undefined
  return unlisted.get(extension) ?? (lookup(extension) || undefined)
}

export function categoryOf(contentType: string): Category {
  const special = table.get(contentType)
  if (special) return special
  const [top = ''] = contentType.split('/', 1)
  if (top === 'image' || top === 'video' || top === 'audio' || top === 'font') return top
  if (documents.test(contentType)) return 'document'
  if (/\+(?:json|xml|yaml|cbor)$/.test(contentType)) return 'data'
  if (/\+(?:zip|gzip|zstd)$/.test(contentType)) return 'archive'
  if (/^text\/(?:x-|coffeescript|jsx|less|css|html|javascript|jade|stylus)/.test(contentType)) return 'code'
  return top === 'text' ? 'document' : 'other'
}

/** Whether files of a media type compress well. */
export const isCompressible = (contentType: string) =>
  contentType.startsWith('text/') || /\+(?:json|xml|text|yaml)$/.test(contentType) || compressible.has(contentType)

// The detector may throw on a damaged file. Loaded lazily: most names have a known extension.
async function detect(head: Uint8Array): Promise<string | undefined> {
  const { fileTypeFromBuffer } = await import('file-type')
  try {
    return (await fileTypeFromBuffer(head))?.mime
  } catch {
    return undefined
  }
}

// UTF-8 without control characters other than white space and escape sequences. The last character may be truncated.
function isText(head: Uint8Array): boolean {
  if (head.some((byte) => (byte < 0x20 && !textControls.has(byte)) || byte === 0x7f)) return false
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true })
    return true
  } catch {
    return false
  }
}

const textControls = new Set(Buffer.from('\b\t\n\v\f\r\x1b'))

// The registered type of these extensions is a binary format. Without its signature the file is text of this type.
const ambiguous = new Map([
  ['.ts', 'text/x-typescript'], // or an MPEG transport stream
  ['.mts', 'text/x-typescript'],
  ['.key', 'text/plain'], // a PEM key, or a Keynote document
])

// Text files that have no extension, also when they are empty.
const textNames =
  /^(?:readme|licen[cs]e|copying|notice|authors|contributors|changelog|changes|news|todo|install|version|codeowners|makefile|dockerfile|gemfile|rakefile|procfile)$/i

// Missing from the library, or better known for another format.
const unlisted = new Map([
  ...['.jsonl', '.ndjson'].map((extension) => [extension, 'application/x-ndjson'] as const),
  ...'cts:typescript diff:diff patch:diff go:go kt:kotlin py:python rb:ruby rs:rust swift:swift tsx:tsx vue:vue'
    .split(' ')
    .map((pair) => pair.split(':'))
    .map(([extension, language]) => [`.${extension}`, `text/x-${language}`] as const),
  ...'adoc asc cfg env jsonc lock md5 properties rst sha1 sha256 sha384 sha512 sum'
    .split(' ')
    .map((extension) => [`.${extension}`, 'text/plain'] as const),
])

const listed: Partial<Record<Category, string>> = {
  font: 'font-woff vnd.ms-fontobject x-font-ttf x-font-bdf x-font-pcf x-font-type1 x-font-ghostscript font-tdpfr',
  document:
    'pdf msword rtf epub+zip postscript vnd.ms-excel vnd.ms-powerpoint vnd.ms-works vnd.visio x-abiword x-mobipocket-ebook vnd.amazon.ebook x-tex x-latex x-dvi oxps vnd.ms-xpsdocument',
  archive:
    'zip gzip zstd vnd.rar x-rar-compressed x-7z-compressed x-tar x-bzip x-bzip2 x-xz x-lzip x-lzma x-lz4 x-compress x-cpio java-archive vnd.android.package-archive x-apple-diskimage x-iso9660-image x-debian-package vnd.debian.binary-package x-rpm x-redhat-package-manager vnd.ms-cab-compressed x-stuffit x-ace-compressed x-arj x-deb',
  code: 'xhtml+xml javascript ecmascript typescript wasm x-sh x-csh x-perl x-httpd-php x-tcl x-java-jnlp-file java-vm node x-python-code',
  data: 'json json5 ld+json xml xml-dtd yaml toml sql x-sqlite3 vnd.sqlite3 vnd.apache.parquet vnd.apache.arrow.file cbor x-ndjson geo+json x-msaccess x-hdf x-netcdf n-triples trig protobuf jsonml+json',
}

const table = new Map<string, Category>([
  ...'csv tab-separated-values xml yaml turtle n3'.split(' ').map((subtype) => [`text/${subtype}`, 'data'] as const),
  ['text/x-vcard', 'document'],
  ...categories.flatMap((category) =>
    (listed[category]?.split(' ') ?? []).map((subtype) => [`application/${subtype}`, category] as const),
  ),
])

const documents =
  /^application\/(?:vnd\.(?:openxmlformats-officedocument|oasis\.opendocument|ms-(?:word|excel|powerpoint)|apple\.(?:pages|numbers|keynote)|sun\.xml|stardivision)\b)/

const compressible = new Set([
  ...'json json5 x-ndjson xml xml-dtd javascript ecmascript typescript yaml toml sql rtf wasm x-sh x-httpd-php vnd.ms-fontobject'
    .split(' ')
    .map((subtype) => `application/${subtype}`),
  ...['font/ttf', 'font/otf', 'font/collection'],
  ...['image/bmp', 'image/x-icon', 'image/vnd.microsoft.icon'],
])
