/** Finds every regular expression of the source: literals, and constructor calls, which can't be checked. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'

export interface Expression {
  readonly file: string
  readonly line: number
  readonly pattern: string
  readonly flags: string
}

/** A call of `RegExp`. `source`: its source text. */
export interface DynamicExpression {
  readonly file: string
  readonly line: number
  readonly source: string
}

export interface Expressions {
  readonly literals: readonly Expression[]
  readonly dynamic: readonly DynamicExpression[]
}

/** The expressions in all TypeScript and JavaScript files below `root`. */
export function expressionsBelow(root: string): Expressions {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.[jt]s$/.test(name))
  const found = files.map((file) => expressionsOf(file, readFileSync(join(root, file), 'utf8')))
  return { literals: found.flatMap(({ literals }) => literals), dynamic: found.flatMap(({ dynamic }) => dynamic) }
}

type Node = Readonly<Record<string, unknown>> & { readonly type?: string; readonly start: number; readonly end: number }

export function expressionsOf(file: string, source: string): Expressions {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`)
  const literals: Expression[] = []
  const dynamic: DynamicExpression[] = []
  const lineOf = ({ start }: Node) => source.slice(0, start).split('\n').length
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Node
    if (node.type === 'Literal' && node.regex) {
      literals.push({ file, line: lineOf(node), ...(node.regex as { pattern: string; flags: string }) })
    }
    if (
      /^(New|Call)Expression$/.test(node.type ?? '') &&
      (node.callee as { readonly name?: string }).name === 'RegExp'
    ) {
      dynamic.push({ file, line: lineOf(node), source: source.slice(node.start, node.end) })
    }
    Object.values(node).forEach(visit)
  }
  visit(program)
  return { literals, dynamic }
}
