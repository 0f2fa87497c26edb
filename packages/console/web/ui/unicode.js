/** A text with the names in it as people write them: "xn--mnchen-3ya.example" → "münchen.example". @param {string} text */
export const toUnicode = (text) =>
  text.replace(/\bxn--([a-z0-9-]+)/gi, (label, code) => decodePunycode(code.toLowerCase()) ?? label)

/** RFC 3492, 6.2. @param {string} code @returns {string | undefined} where it is malformed */
function decodePunycode(code) {
  const split = code.lastIndexOf('-')
  const output = split > 0 ? [...code.slice(0, split)] : []
  let [point, at, bias] = [128, 0, 72]
  for (let index = split + 1; index < code.length; at += 1) {
    const before = at
    for (let [weight, k] = [1, 36]; ; k += 36) {
      const digit = '' === code.charAt(index) ? -1 : alphabet.indexOf(code.charAt(index))
      index += 1
      if (digit < 0) return undefined
      at += digit * weight
      const threshold = Math.min(26, Math.max(1, k - bias))
      if (digit < threshold) break
      weight *= 36 - threshold
    }
    const length = output.length + 1
    bias = adapt(at - before, length, before === 0)
    point += Math.floor(at / length)
    at %= length
    if (point > 0x10_ff_ff) return undefined
    output.splice(at, 0, String.fromCodePoint(point))
  }
  return output.join('')
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** @param {number} delta @param {number} length @param {boolean} isFirst */
function adapt(delta, length, isFirst) {
  let left = isFirst ? Math.floor(delta / 700) : delta >> 1
  left += Math.floor(left / length)
  let k = 0
  for (; left > 455; k += 36) left = Math.floor(left / 35)
  return k + Math.floor((36 * left) / (left + 38))
}
