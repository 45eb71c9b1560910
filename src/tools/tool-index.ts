/**
 * Ranks tools by the words of a query (BM25) over name, title, description and parameter names. Linear in the texts, of which
 * it reads a bounded part.
 */
import { setImmediate as otherWork } from 'node:timers/promises'
import type { Tool } from './port.ts'

/** Maximum characters of a text that are indexed. */
const MAX_TEXT = 2_000
const MAX_PARAMETERS = 64
const MAX_QUERY_TERMS = 32
/** Tools that are indexed before other work of the event loop may run. */
const SLICE = 100
/** The usual constants of BM25: saturation of repeated words, and the weight of the length of a text. */
const SATURATION = 1.2
const LENGTH_WEIGHT = 0.75
/** Weight of a word, by the field that contains it. */
const WEIGHTS = { name: 3, title: 2, description: 1, parameter: 1 }

export interface ToolIndex {
  /** The tools with at least one word of the query, best first. */
  search(query: string): readonly Tool[]
}

interface Posting {
  readonly tool: number
  readonly weight: number
}

export async function createToolIndex(tools: readonly Tool[]): Promise<ToolIndex> {
  const postings = new Map<string, Posting[]>()
  const lengths: number[] = []
  for (const [i, tool] of tools.entries()) {
    if (i > 0 && i % SLICE === 0) await otherWork()
    const weights = weightsOf(tool)
    lengths.push([...weights.values()].reduce((sum, weight) => sum + weight, 0))
    for (const [term, weight] of weights) {
      const list = postings.get(term) ?? []
      list.push({ tool: i, weight })
      postings.set(term, list)
    }
  }
  const average = lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length)
  return {
    search(query) {
      const scores = new Map<number, number>()
      for (const term of new Set(termsOf(query).slice(0, MAX_QUERY_TERMS))) {
        const list = postings.get(term) ?? []
        const rarity = Math.log(1 + (tools.length - list.length + 0.5) / (list.length + 0.5))
        for (const { tool, weight } of list) {
          const length = 1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * lengths[tool]!) / average
          const score = (rarity * weight * (SATURATION + 1)) / (weight + SATURATION * length)
          scores.set(tool, (scores.get(tool) ?? 0) + score)
        }
      }
      return [...scores].sort(([a, x], [b, y]) => y - x || a - b).map(([tool]) => tools[tool]!)
    },
  }
}

function weightsOf({ definition, mcp }: Tool): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const term of termsOf(text)) weights.set(term, (weights.get(term) ?? 0) + weight)
  }
  add(definition.name, WEIGHTS.name)
  add(mcp?.title ?? '', WEIGHTS.title)
  add(definition.description, WEIGHTS.description)
  const { properties } = definition.parameters
  const parameters = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  for (const parameter of parameters.slice(0, MAX_PARAMETERS)) add(parameter.slice(0, 100), WEIGHTS.parameter)
  return weights
}

/** The words of a text in lower case and without a plural `s`. `listOpenIssues` has three. */
function termsOf(text: string): string[] {
  const spaced = text.slice(0, MAX_TEXT).replaceAll(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, ' ')
  const words = spaced.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return words.map((word) => (word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word))
}
