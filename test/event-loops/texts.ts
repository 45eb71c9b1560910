/** Inputs that make careless code slow: long repetitions, with and without an end that does not match. */

const REPEATED: readonly string[] = [
  ...[
    'a',
    ' ',
    '\n',
    '\t',
    '/',
    '.',
    '-',
    '_',
    '=',
    ',',
    ';',
    ':',
    '0',
    '"',
    "'",
    '\\',
    '`',
    '|',
    '@',
    '%',
    '&',
    '#',
    '*',
    '~',
  ],
  ...[
    '(',
    '[',
    '{',
    '<',
    ')',
    'ab',
    'a.',
    'a-',
    'a/',
    '1.',
    '1,',
    'a@',
    ' a',
    ' (',
    ' - ',
    '\r\n',
    '- a\n',
    '[a](',
    '<a ',
    '<!--',
    '${',
  ],
  ...['%25', '\\u0000', '&amp;', '{{', '../', 'a=b;', 'ü', '🦀', '\ud800', '```\n', '-----BEGIN ', 'data: ', 'data:\n'],
  ...['spawn ', 'fork', 'pthread_create', 'import ', 'from a ', 'Traceback ', 'BlockingIOError: [Errno 11]', 'Errno 2'],
  ...[
    'save to ',
    'write a.b ',
    'how many ',
    'poem about a ',
    'sum of 1 to ',
    'sorted by ',
    'count of ',
    '1 + ',
    'x^',
    '2 * (',
  ],
]
const ENDS: readonly string[] = ['', 'x', '\n', '!', '\u0000', '"', '}', ' = ']

export interface Choice {
  pick<T>(from: readonly T[]): T
}

export interface HostileText {
  /** `" " × n + "x"` */
  readonly name: string
  of(characters: number): string
}

export function hostileText(random: Choice): HostileText {
  const [begin, part, end] = [random.pick(['', 'a', '"', '# ', '/', '{']), random.pick(REPEATED), random.pick(ENDS)]
  return {
    name: `${JSON.stringify(begin)} + ${JSON.stringify(part)} × n + ${JSON.stringify(end)}`,
    of: (characters) => begin + part.repeat(Math.ceil(characters / part.length)) + end,
  }
}

/** Values that are wide or deep, instead of long texts. */
export function hostileValue(random: Choice, size: number): { readonly name: string; readonly value: unknown } {
  const text = hostileText(random).of(20)
  const many = Array.from({ length: size }, (_, i) => i)
  const wrap = (wrapped: (inner: unknown) => unknown) =>
    many.slice(0, 60).reduce<unknown>((inner) => wrapped(inner), text)
  return random.pick([
    { name: 'a wide list', value: many.map((i) => `${text}${i}`) },
    { name: 'a list of the same', value: many.map(() => text) },
    { name: 'a wide object', value: Object.fromEntries(many.map((i) => [`${text}${i}`, i])) },
    { name: 'a list of objects', value: many.slice(0, size / 4).map((i) => ({ name: `${text}${i}`, content: text })) },
    { name: 'deep lists', value: wrap((inner) => [inner]) },
    { name: 'deep objects', value: wrap((inner) => ({ properties: inner })) },
    { name: 'a number without end', value: 1e308 },
  ])
}
