/** Keys by the names that models use, as parameters of the protocol's key events. */

export interface KeyStroke {
  readonly key: string
  readonly code: string
  readonly keyCode: number
  /** The text that the key types; undefined if it types none. */
  readonly text: string | undefined
  /** A bit mask: Alt 1, Control 2, Meta 4, Shift 8. */
  readonly modifiers: number
}

const NAMED: Readonly<Record<string, readonly [key: string, keyCode: number, text?: string]>> = {
  enter: ['Enter', 13, '\r'],
  return: ['Enter', 13, '\r'],
  tab: ['Tab', 9],
  escape: ['Escape', 27],
  esc: ['Escape', 27],
  backspace: ['Backspace', 8],
  delete: ['Delete', 46],
  space: [' ', 32, ' '],
  arrowup: ['ArrowUp', 38],
  up: ['ArrowUp', 38],
  arrowdown: ['ArrowDown', 40],
  down: ['ArrowDown', 40],
  arrowleft: ['ArrowLeft', 37],
  left: ['ArrowLeft', 37],
  arrowright: ['ArrowRight', 39],
  right: ['ArrowRight', 39],
  home: ['Home', 36],
  end: ['End', 35],
  pageup: ['PageUp', 33],
  pagedown: ['PageDown', 34],
  ...Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index + 1}`, [`F${index + 1}`, 112 + index]])),
}

const MODIFIERS: Readonly<Record<string, number>> = {
  alt: 1,
  control: 2,
  ctrl: 2,
  meta: 4,
  cmd: 4,
  command: 4,
  shift: 8,
}

export const KEY_EXAMPLES = 'Enter, Tab, Escape, Backspace, Delete, Space, ArrowDown, PageDown, Home, F5, a, Control+A'

/** Parses `Enter`, `a` or `Control+Shift+ArrowLeft`. Undefined if there is no such key. */
export function keyStroke(name: string): KeyStroke | undefined {
  // The last key may be the plus key itself: `Control++`.
  const parts = /^(.*\+)?(.+)$/s.exec(name.trim()) ?? []
  const held = (parts[1] ?? '').toLowerCase().split('+').filter(Boolean)
  if (held.some((each) => !(each in MODIFIERS))) return undefined
  const modifiers = held.reduce((sum, each) => sum | MODIFIERS[each]!, 0)
  const last = parts[2] ?? ''
  const named = NAMED[last.toLowerCase()]
  const types = (modifiers & 7) === 0
  if (named) {
    const [key, keyCode, text] = named
    return { key, code: key === ' ' ? 'Space' : key, keyCode, text: types ? text : undefined, modifiers }
  }
  if ([...last].length !== 1) return undefined
  const upper = last.toUpperCase()
  const code = /[A-Z]/.test(upper) ? `Key${upper}` : /[0-9]/.test(last) ? `Digit${last}` : ''
  return { key: last, code, keyCode: upper.charCodeAt(0), text: types ? last : undefined, modifiers }
}
