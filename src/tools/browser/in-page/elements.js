// The elements of a page by number, with their roles and names. Runs in the page (see documents.ts).
// An element keeps its number for life, and no number is used twice. Roles and names are Chromium's own (`computedRole`,
// `computedName`).
;(() => {
  const MAX_TEXT = 1_000
  const elements = new Map() // number → WeakRef
  const numbers = new WeakMap()

  // Elements for which ARIA has no role.
  const OWN_TAGS = { CANVAS: 'canvas', VIDEO: 'video', AUDIO: 'audio' }
  const OWN_ROLES = { img: 'image' }
  const NOT_TYPED_INTO = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'])

  const clean = (text, most = MAX_TEXT) => {
    const flat = text.replace(/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g, ' ').trim()
    return flat.length > most ? `${flat.slice(0, most)}…` : flat
  }

  const numberOf = (element, fresh) => {
    const known = numbers.get(element)
    if (known !== undefined) return known
    const number = fresh.next++
    numbers.set(element, number)
    elements.set(number, new WeakRef(element))
    return number
  }

  const find = (number) => {
    const element = elements.get(number)?.deref()
    return element?.isConnected ? element : undefined
  }

  const forgetRemoved = () => {
    for (const [number, reference] of elements) if (!reference.deref()?.isConnected) elements.delete(number)
  }

  const aria = (element, name) => element.getAttribute(`aria-${name}`)

  const roleOf = (element) => {
    if (element.tagName === 'INPUT' && element.type === 'file') return 'file'
    if (element.tagName === 'SUMMARY') return 'summary'
    if (element.tagName === 'IFRAME' || element.tagName === 'FRAME') return 'iframe'
    const role = element.computedRole || element.getAttribute('role') || OWN_TAGS[element.tagName] || ''
    if (role === '' && element.tagName === 'INPUT') return element.type === 'color' ? 'color' : 'date'
    return OWN_ROLES[role] ?? (/^[A-Z]/.test(role) ? 'generic' : role)
  }

  const nameOf = (element) =>
    element.computedName || aria(element, 'label') || element.labels?.[0]?.textContent || element.placeholder || ''

  const isDisabled = (element) => element.matches(':disabled') || element.closest('[aria-disabled="true"]') !== null

  const describe = (element) => {
    const name = clean(nameOf(element) || element.textContent || '', 60)
    return `${roleOf(element) || element.tagName.toLowerCase()}${name ? ` ${JSON.stringify(name)}` : ''}`
  }

  return { NOT_TYPED_INTO, clean, numberOf, find, forgetRemoved, aria, roleOf, nameOf, isDisabled, describe }
})()
