/** Flags for the parameters of model calls, by their declarations: `--effort`, `--temperature`, `--verbosity`. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { MODEL_PARAMETERS, type ModelParameters, type ParameterKind } from '../domain/model-parameters.ts'

interface Leaf {
  /** Names from the outermost object inwards. The last one is the name of the flag. */
  readonly path: readonly string[]
  readonly kind: Exclude<ParameterKind, { readonly fields: unknown }>
}

const LEAVES: readonly Leaf[] = leavesOf(MODEL_PARAMETERS, [])

function leavesOf(kinds: Readonly<Record<string, ParameterKind>>, outer: readonly string[]): readonly Leaf[] {
  return Object.entries(kinds).flatMap(([name, kind]) => {
    const path = [...outer, name]
    return 'fields' in kind ? leavesOf(kind.fields, path) : [{ path, kind }]
  })
}

export function withParameterFlags(command: Command): Command {
  for (const { path, kind } of LEAVES) command.addOption(optionOf(path.at(-1)!, kind))
  return command
}

function optionOf(name: string, kind: Leaf['kind']): Option {
  const description = kind.doc.slice(0, kind.doc.indexOf('.')).toLowerCase()
  if ('oneOf' in kind) return new Option(`--${name} <level>`, description).choices([...kind.oneOf])
  return new Option(`--${name} <number>`, `${description}, from ${kind.min} to ${kind.max}`).argParser((text) => {
    const value = text.trim() === '' ? Number.NaN : Number(text)
    if (value >= kind.min && value <= kind.max) return value
    throw new InvalidArgumentError(`It must be a number from ${kind.min} to ${kind.max}.`)
  })
}

/** The parameters among the options of a command. */
export function parametersFrom(options: object): ModelParameters {
  const given = options as Readonly<Record<string, unknown>>
  const parameters: Record<string, unknown> = {}
  for (const { path } of LEAVES) {
    const [outer, inner] = path as [string, string?]
    const value = given[path.at(-1)!]
    if (value === undefined) continue
    parameters[outer] = inner === undefined ? value : { ...(parameters[outer] as object | undefined), [inner]: value }
  }
  return parameters
}
