/** Descriptions of the configured models for a person: names, provider and source. */
import type { ModelDescription } from '../models/port.ts'

export interface AboutModel {
  readonly text: string
  /** Reason why the model cannot be called, and what to do. */
  readonly problem: string | undefined
}

/** Groups names that lead to the same model. */
export function aboutModels(descriptions: readonly ModelDescription[]): AboutModel[] {
  const groups = Map.groupBy(descriptions, ({ provider, model, source, unavailable }) =>
    JSON.stringify([provider, model, source, unavailable]),
  )
  return [...groups.values()].map((group) => {
    const { demo, model, provider, source, unavailable } = group[0]!
    const behind = demo ? 'the built-in demo model' : `${model} (${provider})`
    const from = source === 'built-in demo model' ? '' : `, from ${source}`
    if (unavailable !== undefined)
      return { text: `${group.map(({ name }) => name).join(', ')} → nothing yet`, problem: unavailable }
    return { text: `${group.map(({ name }) => name).join(', ')} → ${behind}${from}`, problem: unavailable }
  })
}
