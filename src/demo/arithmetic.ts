/**
 * Arithmetic in an instruction, with a parser of its own: nothing that a caller writes is evaluated as code in the server.
 * The expression is also valid Python, so the sandbox can compute it.
 */

/** The result as text: whole numbers exactly, others to 12 significant digits. */
type Result = { readonly ok: true; readonly value: string } | { readonly ok: false; readonly problem: string }

/** Results with more digits are refused. */
const MAX_DIGITS = 4000

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/(\d),(?=\d{3}\b)/g, '$1'],
  [/(\d+(?:\.\d+)?)\s*(?:%|percent)\s+of\s+(\d+(?:\.\d+)?)/g, '($1 / 100 * $2)'],
  [/\bmultiplied by\b|\btimes\b|[×·]/g, '*'],
  [/\bdivided by\b|[÷]/g, '/'],
  [/\bplus\b/g, '+'],
  [/\bminus\b|[−–]/g, '-'],
  [/\^/g, '**'],
  [/(\d)\s*x\s*(?=[\d(])/g, '$1 * '],
]

/** The longest expression with an operator. Undefined if there is none. */
export function findExpression(instruction: string): string | undefined {
  const text = WORDS.reduce((rest, [pattern, sign]) => rest.replace(pattern, sign), instruction.toLowerCase())
  const runs = (text.match(/[-(\d.][\d\s.()+*/%-]*[\d)]/g) ?? []).map((run) => run.trim().replace(/\s+/g, ' '))
  return runs
    .filter((run) => /\d\)?\s*[-+*/%]+\s*-?\(?\s*[\d.(]/.test(run) && !/^\d{4}-\d\d?(-\d\d?)?$/.test(run))
    .filter((run) => parse(run) !== undefined)
    .sort((a, b) => b.length - a.length)[0]
    ?.replace(/^\(([^()]*)\)$/, '$1')
}

export function evaluate(expression: string): Result {
  const tree = parse(expression)
  if (!tree) return { ok: false, problem: 'it is not an expression of numbers, + - * / % ** and brackets' }
  try {
    const value = work(tree)
    if (typeof value === 'bigint') return { ok: true, value: value.toString() }
    if (!Number.isFinite(value)) return { ok: false, problem: 'the result is too large' }
    return { ok: true, value: String(Number(value.toPrecision(12))) }
  } catch (error) {
    if (error instanceof RangeError) return { ok: false, problem: error.message }
    throw error
  }
}

type Tree =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'minus'; readonly of: Tree }
  | { readonly kind: 'sign'; readonly sign: string; readonly left: Tree; readonly right: Tree }

/** Undefined if the text is not one whole expression. */
function parse(text: string): Tree | undefined {
  const tokens = text.match(/\d+(?:\.\d+)?|\.\d+|\*\*|\/\/|[-+*/%()]/g) ?? []
  if (tokens.join('') !== text.replace(/\s+/g, '') || tokens.length > 500) return undefined
  let at = 0

  function chain(signs: readonly string[], next: () => Tree | undefined): Tree | undefined {
    let left = next()
    while (left && signs.includes(tokens[at] ?? '')) {
      const sign = tokens[at++]!
      const right = next()
      left = right && { kind: 'sign', sign, left, right }
    }
    return left
  }
  const sum = (): Tree | undefined => chain(['+', '-'], product)
  const product = (): Tree | undefined => chain(['*', '/', '//', '%'], signed)
  function signed(): Tree | undefined {
    if (tokens[at] !== '-') return power()
    at++
    const of = signed()
    return of && { kind: 'minus', of }
  }
  /** Right-associative, and binds tighter than unary minus: -2**2 is -4, as in Python. */
  function power(): Tree | undefined {
    const left = atom()
    if (!left || tokens[at] !== '**') return left
    at++
    const right = signed()
    return right && { kind: 'sign', sign: '**', left, right }
  }
  function atom(): Tree | undefined {
    const token = tokens[at++]
    if (token === '(') {
      const inner = sum()
      return tokens[at++] === ')' ? inner : undefined
    }
    return token !== undefined && /[\d]/.test(token) ? { kind: 'number', text: token } : undefined
  }

  const tree = sum()
  return at === tokens.length ? tree : undefined
}

/** Whole numbers stay exact as long as possible, as in Python. */
function work(tree: Tree): bigint | number {
  switch (tree.kind) {
    case 'number':
      return tree.text.includes('.') ? Number(tree.text) : BigInt(tree.text)
    case 'minus':
      return -work(tree.of)
    case 'sign':
      return apply(tree.sign, work(tree.left), work(tree.right))
    default:
      return tree satisfies never
  }
}

function apply(sign: string, a: bigint | number, b: bigint | number): bigint | number {
  if (sign === '**') return raise(a, b)
  if ((sign === '/' || sign === '//' || sign === '%') && Number(b) === 0) throw new RangeError('it divides by zero')
  if (typeof a === 'bigint' && typeof b === 'bigint' && sign !== '/') return applyWhole(sign, a, b)
  const [x, y] = [Number(a), Number(b)]
  if (sign === '+') return x + y
  if (sign === '-') return x - y
  if (sign === '*') return x * y
  if (sign === '/') return x / y
  const floor = Math.floor(x / y)
  return sign === '//' ? floor : x - y * floor
}

/** Division rounds down and the remainder takes the divisor's sign, as in Python. */
function applyWhole(sign: string, a: bigint, b: bigint): bigint {
  if (sign === '+') return a + b
  if (sign === '-') return a - b
  if (sign === '*') {
    refuseHuge(digits(a) + digits(b))
    return a * b
  }
  const remainder = ((a % b) + b) % b
  return sign === '%' ? remainder : (a - remainder) / b
}

function raise(a: bigint | number, b: bigint | number): bigint | number {
  if (typeof a === 'bigint' && typeof b === 'bigint' && b >= 0n) {
    if (a > 1n || a < -1n) refuseHuge(digits(a) * Number(b))
    return a ** b
  }
  const value = Number(a) ** Number(b)
  if (Number.isNaN(value)) throw new RangeError('the result is not a real number')
  return value
}

function digits(value: bigint): number {
  return value.toString().length
}

function refuseHuge(count: number): void {
  if (count > MAX_DIGITS) throw new RangeError(`the result would have more than ${MAX_DIGITS} digits`)
}
