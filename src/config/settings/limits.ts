/** Limits of a project and of a run. */
import { DEFAULT_LIMITS, type Limits, type Range } from '../../domain/limits.ts'
import { fraction, type Setting, whole } from '../setting.ts'

type PlainLimit = { [K in keyof Limits]: Limits[K] extends number ? K : never }[keyof Limits]
type RangeLimit = { [K in keyof Limits]: Limits[K] extends Range ? K : never }[keyof Limits]

const limit = (name: PlainLimit, min: number, doc: string): Setting =>
  whole(`limits.${name}`, { min, fallback: DEFAULT_LIMITS[name], doc })

const time = (name: PlainLimit, doc: string): Setting =>
  fraction(`limits.${name}`, { min: 0, fallback: DEFAULT_LIMITS[name], doc })

const range = (name: RangeLimit, what: string): Setting[] => {
  const bound = (key: keyof Range, doc: string) =>
    whole(`limits.${name}.${key}`, { min: 1, fallback: DEFAULT_LIMITS[name][key], doc: `${doc} of ${what}.` })
  return [bound('default', 'Default'), bound('min', 'Minimum'), bound('max', 'Maximum')]
}

function bounds({ min, max, default: fallback }: Range) {
  return { min, max, fallback }
}

export const LIMIT_SETTINGS: readonly Setting[] = [
  limit('interactionsPerMinute', 1, 'Interactions that a project may create per minute.'),
  limit('callsPerMinute', 1, 'Other calls of a project per minute.'),
  limit('runningPerProject', 1, 'Concurrently running interactions of a project. Further ones are queued.'),
  limit('queuedPerProject', 0, 'Queued interactions of a project. Further requests get 503.'),
  time('queueWaitS', 'Maximum time in the queue, in seconds. Then the interaction fails with 503.'),
  limit('bodyBytes', 1024, 'Size of a request body, in bytes.'),
  limit(
    'responseBytesPerProject',
    1,
    'Responses of one process that callers of a project have not read yet, in bytes. Further calls get 429. A single larger response is sent.',
  ),
  limit(
    'uploadBytesPerProject',
    1,
    'Request bodies that a project is sending at the same time to one process, in bytes. Further requests get 429.',
  ),
  limit(
    'streamsPerProject',
    1,
    'Open event streams, waiting calls, downloads and uploads of skills of a project in one process. Further calls get 429.',
  ),
  limit('inlineFilesBytes', 0, 'Total size of the inline files of a request, decoded, in bytes.'),
  limit('fileBytes', 0, 'Size of a file by URL, in bytes.'),
  time('fileFetchS', 'Timeout of fetching a file by URL, in seconds. It also fails after 30 seconds without a byte.'),
  limit('outputFilesBytes', 0, 'Total size of the output files of an interaction, in bytes.'),
  limit(
    'outputFiles',
    0,
    'Number of output files of an interaction. Further files are not stored, and a warning reports it.',
  ),
  limit(
    'outputNamesBytes',
    0,
    'Total length of the names of an interaction’s output files, in bytes. Every response with the interaction contains them. One name has at most 1,024 bytes.',
  ),
  time('retentionDays', 'Time after which an ended interaction is deleted, in days.'),
  time('auditRetentionDays', 'Time for which deletions stay on record, in days (`errand audit removed`).'),
  ...range('maxTurnDuration', '`policy.maxTurnDuration`, in seconds'),
  ...range('maxOutputTokens', '`policy.maxOutputTokens`'),
  ...range('maxToolDuration', '`policy.maxToolDuration`, in seconds'),
  fraction('limits.context.compactAt', {
    ...bounds(DEFAULT_LIMITS.context.compactAt),
    doc: 'Default of `policy.context.compactAt`: the share of a model’s context window at which older messages leave its view.',
  }),
  whole('limits.context.keepTokens', {
    ...bounds(DEFAULT_LIMITS.context.keepTokens),
    doc: 'Default of `policy.context.keepTokens`: tokens of the latest messages that stay as they are.',
  }),
  limit('maxModelCalls', 1, 'Model calls of a run. It stops a model that never finishes.'),
  limit('instructionChars', 1, 'Length of `instruction`, in characters.'),
  limit('systemInstructionChars', 1, 'Length of `systemInstruction`, in characters.'),
  limit('tools', 0, 'Entries in `tools`.'),
  limit('skills', 0, 'Entries in `skills`.'),
  limit('skillBytes', 1024, 'Size of a skill, in bytes: of its zip, and of its unpacked files.'),
  limit('skillFiles', 1, 'Number of files of a skill.'),
  limit('skillVersions', 1, 'Number of versions of all skills of a project together.'),
  limit('mcp', 0, 'Entries in `mcp`.'),
  limit('files', 0, 'Entries in `files`.'),
  limit('labels', 0, 'Number of labels of an object.'),
  limit('labelKeyChars', 1, 'Length of a label’s key, in characters.'),
  limit('labelValueChars', 0, 'Length of a label’s value, in characters.'),
  limit('jsonDepth', 4, 'Nesting depth of a request’s JSON.'),
]
