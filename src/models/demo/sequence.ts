/** Sums and rows of whole numbers that an instruction asks for in words, as Python that computes them. */

export interface Sequence {
  /** What is computed, for the answer: `the first 10 Fibonacci numbers`. */
  readonly name: string
  /** Python: an expression for the list, or for the one value. */
  readonly expression: string
  readonly setUp: string
}

/** More numbers are refused by not being understood. */
const MAX_COUNT = 10_000

const PRIME = `def is_prime(n):
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))
`

const FIBONACCI = `def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
`

const KINDS: readonly (readonly [RegExp, string, string, string])[] = [
  [/^fibonacci/, 'Fibonacci numbers', 'fibonacci()', FIBONACCI],
  [/^prime/, 'prime numbers', 'filter(is_prime, itertools.count(2))', PRIME],
  [/^square/, 'square numbers', '(n * n for n in itertools.count(1))', ''],
  [/^cube/, 'cube numbers', '(n ** 3 for n in itertools.count(1))', ''],
  [/^even/, 'even numbers', 'itertools.count(2, 2)', ''],
  [/^odd/, 'odd numbers', 'itertools.count(1, 2)', ''],
]

export function findSequence(instruction: string): Sequence | undefined {
  const text = instruction.toLowerCase().replace(/(\d),(?=\d{3}\b)/g, '$1')
  return firstOf(text) ?? rangeOf(text) ?? single(text)
}

/** `the first 10 primes`, `the sum of the even numbers up to 100` */
function firstOf(text: string): Sequence | undefined {
  const match =
    /\bfirst (\d{1,5}) (fibonacci|primes?|squares?|cubes?|even|odd)\b/.exec(text) ??
    /\b(fibonacci|primes?|squares?|cubes?|even|odd)(?: numbers| integers)? (?:up to|until|below|under|less than|from 1 to|between 1 and) (\d{1,9})\b/.exec(
      text,
    )
  if (!match) return undefined
  const first = /^\d/.test(match[1]!)
  const [amount, word] = first ? [match[1]!, match[2]!] : [match[2]!, match[1]!]
  const kind = KINDS.find(([pattern]) => pattern.test(word))
  if (!kind || Number(amount) < 1 || (first ? Number(amount) > MAX_COUNT : Number(amount) > 1_000_000)) return undefined
  const [, name, numbers, setUp] = kind
  // `squares from 1 to 100` squares each of them; `primes up to 100` stops at 100.
  const ofEach = /\b(squares|cubes) (of|from)\b/.test(text)
  const strict = /\b(below|under|less than)\b/.test(text)
  const list =
    first || ofEach
      ? `list(itertools.islice(${numbers}, ${amount}))`
      : `list(itertools.takewhile(lambda n: n ${strict ? '<' : '<='} ${amount}, ${numbers}))`
  return summed(
    text,
    first
      ? `the first ${amount} ${name}`
      : ofEach
        ? `the ${name} of 1 to ${amount}`
        : `the ${name} ${strict ? 'below' : 'up to'} ${amount}`,
    list,
    setUp,
  )
}

/** `the sum of the numbers from 1 to 100`, `the squares of the numbers from 1 to 10` */
function rangeOf(text: string): Sequence | undefined {
  const match =
    /\b(?:numbers|integers|sum|squares|cubes)\b[^.\d]{0,30}\b(?:from|between)? ?(-?\d{1,7}) (?:to|and|through) (-?\d{1,7})\b/.exec(
      text,
    )
  if (!match || Number(match[2]) - Number(match[1]) > 1_000_000) return undefined
  const power = /\bsquares\b/.test(text) ? ' ** 2' : /\bcubes\b/.test(text) ? ' ** 3' : ''
  const name = `${power === '' ? 'the numbers' : power === ' ** 2' ? 'the squares of the numbers' : 'the cubes of the numbers'} from ${match[1]} to ${match[2]}`
  return summed(text, name, `[n${power} for n in range(${match[1]}, ${match[2]} + 1)]`, '')
}

function summed(text: string, name: string, list: string, setUp: string): Sequence {
  return /\b(sum|add|total)\b/.test(text)
    ? { name: `the sum of ${name}`, expression: `sum(${list})`, setUp }
    : { name, expression: list, setUp }
}

function single(text: string): Sequence | undefined {
  const factorial = /\bfactorial of (\d{1,4})\b/.exec(text)?.[1] ?? /\b(\d{1,4})!(?=\W|$)/.exec(text)?.[1]
  if (factorial && Number(factorial) <= 1000)
    return { name: `${factorial}!`, expression: `math.factorial(${factorial})`, setUp: '' }
  const prime = /\bis (\d{1,12}) (?:a )?prime\b/.exec(text)?.[1]
  if (prime) return { name: `whether ${prime} is prime`, expression: `is_prime(${prime})`, setUp: PRIME }
  const nth = /\b(\d{1,4})(?:st|nd|rd|th) (fibonacci|prime)\b/.exec(text)
  const kind = KINDS.find(([pattern]) => pattern.test(nth?.[2] ?? ''))
  if (!nth || !kind || Number(nth[1]) < 1) return undefined
  return {
    name: `number ${nth[1]} of the ${kind[1]}`,
    expression: `next(itertools.islice(${kind[2]}, ${Number(nth[1]) - 1}, None))`,
    setUp: kind[3],
  }
}

export function sequenceCode({ expression, setUp }: Sequence): string {
  return `import itertools, json, math

${setUp === '' ? '' : `${setUp}\n`}result = ${expression}
print(json.dumps({"result": [str(n) for n in result] if isinstance(result, list) else str(result)}))
`
}
