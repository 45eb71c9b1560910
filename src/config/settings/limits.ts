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
    whole(`limits.${name}.${key}`, { min: 1, fallback: DEFAULT_LIMITS[name][key], doc: `${what}: ${doc}.` })
  return [
    bound('default', 'where neither caller nor agent says'),
    bound('min', 'the least that may be asked for'),
    bound('max', 'the most that may be asked for'),
  ]
}

export const LIMIT_SETTINGS: readonly Setting[] = [
  limit('interactionsPerMinute', 1, 'Interactions that a project may create in a minute.'),
  limit('callsPerMinute', 1, 'Other calls of a project in a minute.'),
  limit('runningPerProject', 1, 'Interactions of a project that run at once; the next ones queue.'),
  limit('queuedPerProject', 0, 'Interactions of a project that may wait; more answer 503.'),
  time('queueWaitS', 'How long one may wait for a worker, seconds; then it fails with 503.'),
  limit('bodyBytes', 1024, 'A request body, bytes.'),
  limit(
    'responseBytesPerProject',
    1,
    'Answers of a project that its callers have not read yet, bytes, in one process; more calls answer 429. A single larger answer is sent.',
  ),
  limit('uploadBytesPerProject', 1, 'Bodies that a project is sending, bytes, in one process; more answer 429.'),
  limit(
    'streamsPerProject',
    1,
    'Event streams, waiting calls, downloads and uploads of skills that a project has open, in one process; more answer 429.',
  ),
  limit('inlineFilesBytes', 0, 'All inline files of a request together, decoded, bytes.'),
  limit('fileBytes', 0, 'A file by URL, bytes.'),
  time('fileFetchS', 'How long a file by URL may take to come, seconds; half a minute without a byte ends it too.'),
  limit('outputFilesBytes', 0, 'All output files of an interaction together, bytes.'),
  limit('outputFiles', 0, 'Output files of an interaction. What is over is left behind, with a warning.'),
  limit(
    'outputNamesBytes',
    0,
    'The names of all output files of an interaction together, bytes: every answer with the interaction carries them. One name has at most 1,024.',
  ),
  time('retentionDays', 'How long an ended interaction is kept, days.'),
  time('auditRetentionDays', 'How long it stays on record what was removed, days (`errand audit removed`).'),
  ...range('maxTurnDuration', '`policy.maxTurnDuration`, seconds'),
  ...range('maxOutputTokens', '`policy.maxOutputTokens`, tokens'),
  ...range('maxToolDuration', '`policy.maxToolDuration`, seconds of one tool call'),
  limit('maxModelCalls', 1, 'Model calls in one run: a stop for a model that never ends.'),
  limit('instructionChars', 1, '`instruction`, characters.'),
  limit('systemInstructionChars', 1, '`systemInstruction`, characters.'),
  limit('tools', 0, 'Entries in `tools`.'),
  limit('skills', 0, 'Entries in `skills`.'),
  limit('skillBytes', 1024, 'A skill: its zip, and its files unpacked, bytes.'),
  limit('skillFiles', 1, 'Files of a skill.'),
  limit('skillVersions', 1, 'Versions of skills that a project may keep, of all its skills together.'),
  limit('mcp', 0, 'Entries in `mcp`.'),
  limit('files', 0, 'Entries in `files`.'),
  limit('labels', 0, 'Labels of one object.'),
  limit('labelKeyChars', 1, 'A label’s key, characters.'),
  limit('labelValueChars', 0, 'A label’s value, characters.'),
  limit('jsonDepth', 4, 'How deep a request’s JSON may be nested.'),
]
