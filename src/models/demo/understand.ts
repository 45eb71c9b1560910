/** An instruction, the files beside it and the turns before it → the task. What only the file can tell is left to the task. */
import { findExpression } from './arithmetic.ts'
import { haiku } from './compose.ts'
import { findSequence } from './sequence.ts'
import type { InputFile, Task } from './task.ts'
import type { Transcript } from './transcript.ts'

const LANGUAGES = {
  python: 'python',
  py: 'python',
  python3: 'python',
  bash: 'bash',
  sh: 'bash',
  shell: 'bash',
  js: 'javascript',
  javascript: 'javascript',
  node: 'javascript',
} as const

const FILE_NAME =
  /(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:csv|tsv|tab|json|jsonl|ndjson|geojson|log|txt|md|svg|html?|ya?ml|xml|py|js|sh|ini|conf)\b/gi
const DATA_WORDS =
  /\b(how many|how often|average|avg|mean|sum|total|min|max|minimum|maximum|median|count|number of|highest|lowest|most|least|largest|smallest|top|by|per|each|plot|chart|graph|describe|columns?|statistics|stats|summary|summari[sz]e|unique|distinct|different|deviation|histogram|overview|correlation|which|\w{3,}est|analy[sz]e|frequent|percentage|percent|share|proportion|compare|lines|rows|records|what is)\b/i

/**
 * Characters of an instruction that are read. The grammar is made of regular expressions that take quadratic time, and the
 * demo model runs on the server's event loop.
 */
const MAX_READ = 1_000

export function understand({ files, ...said }: Transcript): Task {
  const code = fencedCode(said.instruction)
  if (code) return code
  const instruction = said.instruction.slice(0, MAX_READ)
  const earlier = said.earlier.map((text) => text.slice(0, MAX_READ))
  return (
    webSearch(instruction) ??
    sequence(instruction, files) ??
    fileToWrite(instruction, files) ??
    aboutFiles(instruction, files) ??
    arithmetic(instruction, files) ??
    followUp(instruction, files, earlier) ??
    question(instruction, files) ?? { kind: 'unknown' }
  )
}

function fencedCode(instruction: string): Task | undefined {
  const match = /```([\w+]*)[ \t]*\n([\s\S]*?)\n?```/.exec(instruction)
  if (!match) return undefined
  const language = LANGUAGES[(match[1] || 'python').toLowerCase() as keyof typeof LANGUAGES]
  return language ? { kind: 'run_code', language, code: match[2]! } : undefined
}

function webSearch(instruction: string): Task | undefined {
  const asked =
    /^\s*(?:please\s+)?(?:(?:do a |run a )?web search|search (?:the )?(?:web|internet)|search online|google)\b[:\s]*(?:(?:for|about|on)\b)?\s*["“]?(.+?)["”.?!\s]*$/is.exec(
      instruction,
    )
  return asked ? { kind: 'search', query: asked[1]! } : undefined
}

const WRITE = /\b(write|create|make|save|put|store|generate|add)\b/i

/** `write … to F`, `create a file F with the content …`, `save "…" as F`; what is computed first is no such task. */
function fileToWrite(instruction: string, files: readonly InputFile[]): Task | undefined {
  if (!WRITE.test(instruction)) return undefined
  const target = saveTarget(instruction, files) ?? namedTarget(instruction, files)
  if (!target) return undefined
  const path = outputPath(target)
  const subject =
    /\b(?:haiku|poem|verse)\b(?:\s+(?:about|on|for)\s+(?:the\s+|a\s+|an\s+)?([\p{L}\p{N}' -]+?))?(?=\s+(?:to|in|into|as|called|named)\b|[.,!?]|$)/iu.exec(
      instruction,
    )
  if (subject)
    return {
      kind: 'write_file',
      path,
      content: haiku(subject[1]?.trim() ?? ''),
      what: 'a haiku (one of the few verses I know)',
    }
  const content = contentIn(instruction)
  if (content !== undefined) return { kind: 'write_file', path, content, what: 'the text' }
  const computes =
    files.some((file) => mentions(instruction, file.name)) ||
    (files.length > 0 && DATA_WORDS.test(instruction)) ||
    findExpression(instruction) !== undefined
  return computes ? undefined : { kind: 'needs_words', path }
}

function contentIn(instruction: string): string | undefined {
  const fenced = /```\w*[ \t]*\n([\s\S]*?)\n?```/.exec(instruction)?.[1]
  if (fenced !== undefined) return fenced
  const said =
    /\b(?:with (?:the )?(?:content|contents|text|line|words)|containing(?: the (?:text|words|line))?|that (?:says|contains)|saying|content)\b:?\s*([\s\S]+)$/i.exec(
      instruction,
    )?.[1]
  const quoted = /["“]([^"”]+)["”]|'([^']+)'|`([^`]+)`/.exec(said ?? instruction.replace(FILE_NAME, ' '))
  if (quoted) return quoted[1] ?? quoted[2] ?? quoted[3]
  return said?.replace(/\s+(?:to|in|into)\s+\S+\.\w+[.!?]?\s*$/i, '').trim() || undefined
}

/** The file behind `to`, `as`, `into`; an input file is not meant unless it lies in outputs/. */
function saveTarget(instruction: string, files: readonly InputFile[]): string | undefined {
  const pattern = new RegExp(
    `\\b(?:save|write|store|export|put|output|saved|written)\\b[\\s\\S]*?\\b(?:to|as|into|in)\\s+(?:a |the )?(?:new )?(?:file )?(?:called |named )?["'\`]?(${FILE_NAME.source})`,
    'gi',
  )
  for (const match of instruction.matchAll(pattern)) {
    if (match[1] && !files.some((file) => file.name === match[1])) return match[1]
  }
  return undefined
}

function namedTarget(instruction: string, files: readonly InputFile[]): string | undefined {
  const names = instruction.match(FILE_NAME)?.filter((name) => !files.some((file) => file.name === name)) ?? []
  return /\b(file|called|named|create|write|make)\b/i.test(instruction) ? names[0] : undefined
}

function outputPath(name: string): string {
  const plain = name.replace(/^(\.\/|\/workspace\/)/, '')
  return plain.startsWith('outputs/') ? plain : `outputs/${plain}`
}

function aboutFiles(instruction: string, files: readonly InputFile[]): Task | undefined {
  if (
    /\b(what|which|how many|list|show|count)\b(?: \w+){0,4} files?\b(?! .*\b(contain|about)\b)/i.test(instruction) &&
    !files.some((file) => mentions(instruction, file.name))
  ) {
    return { kind: 'list_files' }
  }
  const named = files.find((file) => mentions(instruction, file.name))
  const shows = /^(?:please )?(?:show|print|display|read|cat|open|give me|head|what does)\b/i.test(instruction)
  const plain = /\b(?:first|top|head)\s+(\d+)\s+(?:lines|rows)\b/i.exec(instruction)
  if (named && shows && (plain || !DATA_WORDS.test(withoutFiles(instruction, files).replace(/\blines\b/i, '')))) {
    return { kind: 'show_file', file: named.name, lines: plain ? Number(plain[1]) : undefined }
  }
  return undefined
}

function arithmetic(instruction: string, files: readonly InputFile[]): Task | undefined {
  const text = withoutFiles(instruction, files)
  const expression = findExpression(text)
  if (!expression || files.some((file) => mentions(instruction, file.name))) return undefined
  // `between 5 - 10 rows`: with a file there, numbers with a sign between them may be about its data.
  if (files.length > 0 && !/\b(what is|what's|compute|calculate|evaluate|how much|work out)\b/i.test(text))
    return undefined
  const save = saveTarget(instruction, files)
  return { kind: 'arithmetic', expression, save: save && outputPath(save) }
}

function sequence(instruction: string, files: readonly InputFile[]): Task | undefined {
  if (files.some((file) => mentions(instruction, file.name))) return undefined
  const found = findSequence(instruction)
  const save = found && saveTarget(instruction, files)
  return found && { kind: 'sequence', sequence: found, save: save && outputPath(save) }
}

const GOES_ON = /^\s*(?:and|now|also|then|ok(?:ay)?|what about|how about|same|but|plus|only|instead)\b/i

/** A turn that leans on an earlier one: its file has to be attached again, the sandbox is a fresh one. */
function followUp(instruction: string, files: readonly InputFile[], earlier: readonly string[]): Task | undefined {
  const words = instruction.split(/\s+/).length
  const leans = GOES_ON.test(instruction) || (words <= 7 && !files.some((file) => mentions(instruction, file.name)))
  if (!leans || earlier.length === 0) return undefined
  const before = earlier.findLast(
    (text) =>
      instruction !== text &&
      (text.match(FILE_NAME)?.length ?? 0) + Number(DATA_WORDS.test(text) && !GOES_ON.test(text)) > 0,
  )
  if (before === undefined) return undefined
  const own = instruction.match(FILE_NAME)?.find((name) => files.some((file) => sameFile(file.name, name)))
  const name = own ?? before.match(FILE_NAME)?.[0]
  const file =
    files.find((candidate) => name !== undefined && sameFile(candidate.name, name)) ??
    (files.length === 1 ? files[0] : undefined)
  if (!file) return name === undefined ? undefined : { kind: 'fresh_sandbox', name }
  const save = saveTarget(instruction, files)
  return {
    kind: 'data',
    file: file.name,
    question: {
      text: questionText(instruction, files, save),
      before: questionText(before, files, undefined),
      save: save && outputPath(save),
    },
  }
}

function question(instruction: string, files: readonly InputFile[]): Task | undefined {
  const save = saveTarget(instruction, files)
  const named = files.filter((file) => mentions(instruction, file.name))
  const strange = instruction
    .match(FILE_NAME)
    ?.find((name) => name !== save && !files.some((file) => sameFile(file.name, name)))
  if (named.length === 0 && strange)
    return { kind: 'missing_file', name: strange, attached: files.map(({ name }) => name) }
  const says = DATA_WORDS.test(instruction) || (files.length === 1 && instruction.split(/\s+/).length >= 3)
  if (named.length === 0 && !says) return undefined
  const file = named[0] ?? (files.length === 1 ? files[0] : undefined)
  if (!file) return files.length > 1 ? { kind: 'which_file', attached: files.map(({ name }) => name) } : undefined
  return {
    kind: 'data',
    file: file.name,
    question: { text: questionText(instruction, files, save), before: undefined, save: save && outputPath(save) },
  }
}

/** Without file names and the wish to save: neither says what to compute. */
function questionText(instruction: string, files: readonly InputFile[], save: string | undefined): string {
  const unsaved =
    save === undefined
      ? instruction
      : instruction.replace(
          /[,;.]?\s*(?:and\s+)?(?:then\s+)?\b(?:save|write|store|export|put|output)\b[^.?!]*?\b(?:to|as|into|in)\b.*$/is,
          ' ',
        )
  return withoutFiles(unsaved.trim() === '' ? instruction : unsaved, files)
    .replace(GOES_ON, ' ')
    .trim()
}

function withoutFiles(instruction: string, files: readonly InputFile[]): string {
  const names = files.map(({ name }) => name).sort((a, b) => b.length - a.length)
  const text = names.reduce((rest, name) => {
    const stem = baseName(name).replace(/\.[^.]*$/, '')
    const forms = [name, baseName(name), ...(/[-_]/.test(stem) ? [stem, stem.replace(/[-_]/g, ' ')] : [])]
    return forms.reduce((left, form) => left.replaceAll(form, ' '), rest)
  }, instruction)
  return text
    .replace(FILE_NAME, ' ')
    .replace(/\b(?:in|from|of|on|for)\s+(?=[?.,!]|$)/gim, '')
    .replace(/[ \t]{2,}/g, ' ')
}

/** By its whole name, its last part, or that without its ending (`seattle-weather`, `seattle weather`). */
function mentions(instruction: string, name: string): boolean {
  const text = instruction.toLowerCase()
  const base = baseName(name).toLowerCase()
  const stem = base.replace(/\.[^.]*$/, '')
  return (
    text.includes(name.toLowerCase()) ||
    text.includes(base) ||
    (/[-_ ]/.test(stem) && (text.includes(stem) || text.includes(stem.replace(/[-_]/g, ' '))))
  )
}

function sameFile(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase() || baseName(a).toLowerCase() === baseName(b).toLowerCase()
}

function baseName(name: string): string {
  return name.split('/').at(-1)!
}
