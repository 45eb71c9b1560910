/**
 * Fits the parameters of a request to a model. A provider's record declares what its models accept; a parameter
 * that the model refuses is left out. A provider may still refuse one that should be accepted: then the call is repeated without it, and
 * later calls leave it out.
 */
import type { IgnoredParameter, ModelParameters, Verbosity } from '../domain/model-parameters.ts'
import { MAX_ERROR_CHARACTERS } from './context-window.ts'
import type { CallNotice } from './port.ts'
import type { LimitedOutcome } from './token-limit.ts'

/** Levels of reasoning effort, in the words that providers use, from the lowest to the highest. */
const LEVELS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Level = (typeof LEVELS)[number]

/** The parameters that a model accepts. */
export interface ParameterSupport {
  /** Levels of effort. Empty: the model does not reason. Undefined: its effort cannot be set. */
  readonly levels: readonly Level[] | undefined
  /** Highest temperature. Undefined: none is accepted. */
  readonly maxTemperature?: number
  /** Whether a temperature is accepted together with this effort; undefined: the model's default. Default: with any. */
  readonly temperatureWith?: (level: Level | undefined) => boolean
  readonly verbosity?: boolean
}

/** The parameters of one call. */
export interface FittedParameters {
  readonly effort?: Level
  readonly temperature?: number
  readonly verbosity?: Verbosity
}

type Name = keyof FittedParameters

interface Fit {
  readonly sent: FittedParameters
  readonly ignored: readonly IgnoredParameter[]
}

const PATHS: Readonly<Record<Name, string>> = {
  effort: 'reasoning.effort',
  temperature: 'temperature',
  verbosity: 'verbosity',
}

/** Wordings of a provider that refuses a parameter. */
const REFUSALS: Readonly<Record<Name, RegExp>> = {
  effort:
    /\beffort\b|reasoning_?effort|thinking[._ ]?(?:config|level|budget|enabled|type|mode)|thinking is not supported/i,
  temperature: /\btemperature\b/i,
  verbosity: /\bverbosity\b/i,
}

const PACKAGE_FEATURES: Readonly<Record<string, Name>> = {
  reasoning: 'effort',
  reasoningEffort: 'effort',
  temperature: 'temperature',
  textVerbosity: 'verbosity',
}

export interface ParameterFilter {
  /** Calls `attempt` with the accepted parameters, and again without one while the provider refuses it. Reports what is left out. */
  call<Outcome extends LimitedOutcome>(
    asked: ModelParameters | undefined,
    onNotice: (notice: CallNotice) => void,
    attempt: (sent: FittedParameters) => Promise<Outcome>,
  ): Promise<Outcome>
}

/** `model` is the name in the catalogue, for messages. */
export function createParameterFilter(model: string, support: ParameterSupport): ParameterFilter {
  const refused = new Set<Name>()
  return {
    async call(asked, onNotice, attempt) {
      if (!asked) return attempt({})
      const lessons = new Set(refused)
      for (;;) {
        const { sent, ignored } = without(fitParameters(model, support, asked), lessons, model)
        for (const each of ignored) onNotice({ type: 'ignored', ...each })
        const outcome = await attempt(sent)
        if (outcome.ok) {
          for (const name of lessons) refused.add(name)
          return outcome
        }
        const name = refusedIn(outcome, sent)
        if (name === undefined) return outcome
        lessons.add(name)
      }
    },
  }
}

/** The notice of a parameter that an AI SDK package left out, by its name there. Undefined if it is about something else. */
export function noticeOfPackage(model: string, feature: string): CallNotice | undefined {
  const name = PACKAGE_FEATURES[feature]
  if (!name) return undefined
  return { type: 'ignored', param: PATHS[name], message: `The model ${model} ignored ${PATHS[name]}.` }
}

function without({ sent, ignored }: Fit, refused: ReadonlySet<Name>, model: string): Fit {
  const names = Object.keys(sent) as Name[]
  const refusals = names.filter((name) => refused.has(name)).map((name) => PATHS[name])
  return {
    sent: Object.fromEntries(names.filter((name) => !refused.has(name)).map((name) => [name, sent[name]])),
    ignored: [
      ...ignored,
      ...refusals.map((param) => ({ param, message: `The model ${model} refused ${param}, so it was left out.` })),
    ],
  }
}

/** The parameter that the provider's error is about. Undefined if it is about something else. */
function refusedIn(
  { failure, providerError }: Extract<LimitedOutcome, { ok: false }>,
  sent: FittedParameters,
): Name | undefined {
  const message = (providerError?.message ?? '').slice(0, MAX_ERROR_CHARACTERS)
  if (failure.kind !== 'refused' || message === '') return undefined
  return (Object.keys(sent) as Name[]).find((name) => REFUSALS[name].test(message))
}

function fitParameters(model: string, support: ParameterSupport, asked: ModelParameters): Fit {
  const ignored: IgnoredParameter[] = []
  const ignore = (name: Name, message: string) => {
    ignored.push({ param: PATHS[name], message: `The model ${model} ${message}` })
  }
  const effort = fitEffort(support.levels, asked.reasoning?.effort, (message) => ignore('effort', message))
  const temperature = fitTemperature(support, effort, asked.temperature, (message) => ignore('temperature', message))
  const verbosity = support.verbosity ? asked.verbosity : undefined
  if (asked.verbosity !== undefined && verbosity === undefined)
    ignore('verbosity', 'has no verbosity, so it was ignored.')
  return {
    sent: {
      ...(effort !== undefined && { effort }),
      ...(temperature !== undefined && { temperature }),
      ...(verbosity !== undefined && { verbosity }),
    },
    ignored,
  }
}

function fitEffort(
  levels: ParameterSupport['levels'],
  asked: Level | undefined,
  ignore: (message: string) => void,
): Level | undefined {
  if (asked === undefined) return undefined
  if (!levels) {
    ignore('has no setting for reasoning.effort, so it was ignored.')
    return undefined
  }
  if (levels.length === 0) {
    if (asked !== 'none') ignore('does not reason, so reasoning.effort was ignored.')
    return undefined
  }
  const level = nearest(levels, asked)
  // `max` is the highest effort of the model, whatever its name.
  if (level !== asked && asked !== 'max') ignore(`has no reasoning.effort ${asked}; ${level} was used.`)
  return level
}

/** The lowest accepted level that is not below `asked`, or else the highest. `none` is returned only if it was asked for. */
function nearest(levels: readonly Level[], asked: Level): Level {
  const accepted = asked === 'none' ? levels : levels.filter((level) => level !== 'none')
  const from = LEVELS.indexOf(asked)
  return accepted.find((level) => LEVELS.indexOf(level) >= from) ?? accepted.at(-1) ?? levels[0]!
}

function fitTemperature(
  { maxTemperature, temperatureWith = () => true }: ParameterSupport,
  effort: Level | undefined,
  asked: number | undefined,
  ignore: (message: string) => void,
): number | undefined {
  if (asked === undefined) return undefined
  if (maxTemperature === undefined) {
    ignore('accepts no temperature, so it was ignored.')
    return undefined
  }
  if (!temperatureWith(effort)) {
    ignore('accepts a temperature only without reasoning (reasoning.effort none), so it was ignored.')
    return undefined
  }
  if (asked > maxTemperature) ignore(`accepts a temperature of at most ${maxTemperature}, which was used.`)
  return Math.min(asked, maxTemperature)
}
