/** Number sequences: `the first 10 Fibonacci numbers`, `the first 20 primes`. */

export interface Sequence {
  /** `first 10 Fibonacci numbers` */
  readonly name: string
  /** A Python expression for the list. */
  readonly expression: string
}

const MAX_COUNT = 10_000

const NAMES: Readonly<Record<string, string>> = {
  fibonacci: 'Fibonacci numbers',
  prime: 'prime numbers',
  square: 'square numbers',
}

/** Undefined if the instruction names no sequence, or a longer one than is supported. */
export function findSequence(instruction: string): Sequence | undefined {
  const [, count = '', kind = ''] = /\bfirst (\d{1,5}) (fibonacci|prime|square)s?\b/i.exec(instruction) ?? []
  const name = NAMES[kind.toLowerCase()]
  if (!name || Number(count) < 1 || Number(count) > MAX_COUNT) return undefined
  return { name: `first ${count} ${name}`, expression: `list(itertools.islice(${kind.toLowerCase()}(), ${count}))` }
}

export function sequenceCode({ expression }: Sequence): string {
  return `import itertools, json, math

def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b

def prime():
    return (n for n in itertools.count(2) if all(n % d for d in range(2, math.isqrt(n) + 1)))

def square():
    return (n * n for n in itertools.count(1))

print(json.dumps({"numbers": [str(n) for n in ${expression}]}))
`
}
