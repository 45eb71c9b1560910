/**
 * The code blocks of a documentation page. The rule after a block's language says how the tests check it:
 *
 *     ```sh run                 runs, in order with the other blocks of its page
 *     ```text output            is the output of the block before it; … matches any text in a line, […] any lines
 *     ```ts file=hello.mjs      is written to that file, for a later block
 *     ```yaml config env=A,B    is a valid errand.yaml, with these variables set; `each-line`: each line is one
 *     ```json schema=Policy     is valid for that schema of the OpenAPI document
 *     ```sh not-run="why"       is a command that cannot run here
 *     ```text shown="why"       is not a command
 *
 * `<!-- setup sh … -->` runs at its position. `<!-- setup ts … -->` and `<!-- setup python … -->` are put before each
 * later block of that language. A block without a rule is an error.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'

export const ROOT = resolve(import.meta.dirname, '../..')

export type Rule =
  | { readonly kind: 'run'; readonly async: boolean }
  | { readonly kind: 'output' }
  | { readonly kind: 'file'; readonly name: string }
  | { readonly kind: 'config'; readonly env: readonly string[]; readonly eachLine: boolean }
  | { readonly kind: 'schema'; readonly name: string }
  | { readonly kind: 'not-run' | 'shown'; readonly reason: string }
  | { readonly kind: 'setup' }

export interface Block {
  readonly page: string
  readonly language: string
  readonly rule: Rule
  readonly text: string
}

const OTHERS = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'clients/typescript/README.md',
  'clients/python/README.md',
]

export function pages(): string[] {
  return [
    ...readdirSync(join(ROOT, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
    ...OTHERS,
  ]
}

/** Throws with a list of all blocks without a rule. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = []
  const without: string[] = []
  const walk = (token: Token): void => {
    if (token.type === 'code') {
      const { lang, text } = token as Tokens.Code
      const rule = ruleOf(lang ?? '')
      if (rule) blocks.push({ page, language: lang?.split(' ')[0] ?? '', rule, text })
      else without.push(`${page}, \`\`\`${lang ?? ' (indented)'}: ${text.split('\n')[0]}`)
    }
    const setup = token.type === 'html' && /^<!-- setup (sh|ts|python)\n([\s\S]*?)-->/.exec((token as Tokens.HTML).text)
    if (setup) blocks.push({ page, language: setup[1]!, rule: { kind: 'setup' }, text: setup[2]! })
    for (const child of [...((token as Tokens.Generic).tokens ?? []), ...((token as Tokens.List).items ?? [])])
      walk(child)
  }
  for (const token of new Marked().lexer(readFileSync(join(ROOT, page), 'utf8'))) walk(token)
  if (without.length > 0) throw new Error(`These blocks have no rule (test/docs/blocks.ts):\n${without.join('\n')}`)
  return blocks
}

function ruleOf(info: string): Rule | undefined {
  const rest = info.slice(info.split(' ')[0]!.length + 1)
  const reason = /^(not-run|shown)="([^"]{5,})"$/.exec(rest)
  if (reason) return { kind: reason[1] as 'not-run' | 'shown', reason: reason[2]! }
  const [word = '', ...more] = rest.split(' ')
  const [name, value = ''] = word.split('=')
  if (name === 'run') return { kind: 'run', async: more.includes('async') }
  if (name === 'output') return { kind: 'output' }
  if (name === 'file' && value) return { kind: 'file', name: value }
  if (name === 'schema' && value) return { kind: 'schema', name: value }
  if (name !== 'config') return undefined
  const env = more.find((each) => each.startsWith('env='))?.slice('env='.length) ?? ''
  return { kind: 'config', env: env.split(',').filter(Boolean), eachLine: more.includes('each-line') }
}
