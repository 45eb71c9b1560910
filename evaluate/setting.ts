/** Settings that an evaluation compares: fields of a request, by their paths. */
import type { InteractionRequest } from '../clients/typescript/src/index.ts'

export interface Setting {
  /** The text on the command line. */
  readonly name: string
  readonly fields: readonly (readonly [path: readonly string[], value: unknown])[]
}

/** The setting without changes. */
export const DEFAULT_SETTING: Setting = { name: 'default', fields: [] }

/** Parses `reasoning.effort=high,policy.maxCost=2`. Throws if a part has no `=`. */
export function parseSetting(text: string): Setting {
  if (text === DEFAULT_SETTING.name) return DEFAULT_SETTING
  const fields = text.split(',').map((part) => {
    const at = part.indexOf('=')
    if (at < 1) throw new Error(`--setting ${text}: "${part}" is not FIELD=VALUE, such as reasoning.effort=high`)
    return [part.slice(0, at).split('.'), parseValue(part.slice(at + 1))] as const
  })
  return { name: text, fields }
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export function withSetting(request: InteractionRequest, { fields }: Setting): InteractionRequest {
  return fields.reduce((changed, [path, value]) => put(changed, path, value), request)
}

function put<T>(target: T, [key = '', ...rest]: readonly string[], value: unknown): T {
  const inner = (target as Record<string, unknown> | undefined)?.[key]
  return { ...target, [key]: rest.length > 0 ? put(inner, rest, value) : value } as T
}
