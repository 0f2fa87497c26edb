/** @import { IconName } from '../ui/icons.js' */

/** The categories of the service, in the order in which they are shown; each has its colour in the style sheet. */
export const categories = [
  'image',
  'video',
  'audio',
  'document',
  'code',
  'data',
  'archive',
  'font',
  'other',
]

/** @param {string} category @returns {IconName} */
export const iconOf = (category) => (category === 'image' ? 'image' : 'file')

/** "application/pdf" → "PDF"; "image/svg+xml" → "SVG". @param {string} contentType */
export function kindOf(contentType) {
  const [type = ''] = contentType.split(';')
  const known = names.get(type)
  if (known) return known
  const sub = type.split('/')[1] ?? type
  return sub
    .replace(/^(?:x-|vnd\.)/, '')
    .replace(/\+.*$/, '')
    .toUpperCase()
    .slice(0, 12)
}

const names = new Map([
  ['text/plain', 'Text'],
  ['text/javascript', 'JavaScript'],
  ['application/javascript', 'JavaScript'],
  ['text/markdown', 'Markdown'],
  ['application/octet-stream', 'Binary'],
  ['video/mp4', 'MP4 video'],
  ['audio/mpeg', 'MP3 audio'],
])
