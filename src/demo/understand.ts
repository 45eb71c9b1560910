/** An instruction and the files with it → the task. Questions about a table are read later, when its columns are known. */
import { findExpression } from './arithmetic.ts'
import { findSequence } from './sequence.ts'
import type { Task } from './task.ts'
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

const FILE_NAME = /(?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:csv|tsv|tab|json|log|txt|md|svg|html?|ya?ml|xml|py|js|sh)\b/gi

const DATA_WORDS =
  /\b(how many|average|avg|mean|sum|total|min|max|minimum|maximum|median|count|number of|highest|lowest|top|by|per|plot|chart|graph)\b/i

/**
 * Characters of an instruction that are read. The regular expressions here take quadratic time, and the demo model runs on
 * the server's event loop.
 */
const MAX_READ = 1_000

export function understand(transcript: Transcript): Task {
  const { files } = transcript
  const code = fencedCode(transcript.instruction)
  if (code) return code
  const instruction = transcript.instruction.slice(0, MAX_READ)
  return (
    webSearch(instruction) ??
    fileToWrite(instruction, files) ??
    listing(instruction, files) ??
    calculation(instruction, files) ??
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
    /^\s*(?:please\s+)?search (?:the )?(?:web|internet)\b[:\s]*(?:(?:for|about|on)\b)?\s*["“]?(.+?)["”.?!\s]*$/is.exec(
      instruction,
    )
  return asked ? { kind: 'search', query: asked[1]! } : undefined
}

/** `create a file F with the content …`, `write "…" to F`. Undefined if the content is to be computed. */
function fileToWrite(instruction: string, files: readonly string[]): Task | undefined {
  if (!/\b(write|create|make|save|put|store)\b/i.test(instruction)) return undefined
  const target = instruction.match(FILE_NAME)?.find((name) => !files.includes(name))
  if (!target) return undefined
  const path = outputPath(target)
  const content = contentIn(instruction)
  if (content !== undefined) return { kind: 'write_file', path, content }
  const computes = findExpression(instruction) ?? findSequence(instruction)
  return computes || files.length > 0 || DATA_WORDS.test(instruction) ? undefined : { kind: 'needs_words', path }
}

/** The text in quotes, or after `with the content`. */
function contentIn(instruction: string): string | undefined {
  const said = /\b(?:with the content|with the text|containing|saying)\b:?\s*([\s\S]+)$/i.exec(instruction)?.[1]
  const quoted = /["“]([^"”]+)["”]|'([^']+)'|`([^`]+)`/.exec(said ?? instruction)
  return quoted?.[1] ?? quoted?.[2] ?? quoted?.[3] ?? said?.trim()
}

function outputPath(name: string): string {
  const plain = name.replace(/^(\.\/|\/workspace\/)/, '')
  return plain.startsWith('outputs/') ? plain : `outputs/${plain}`
}

function listing(instruction: string, files: readonly string[]): Task | undefined {
  const asks = /\b(what|which|how many|list|show|count)\b(?: \w+){0,4} files?\b/i.test(instruction)
  return asks && !files.some((file) => mentions(instruction, file)) ? { kind: 'list_files' } : undefined
}

function calculation(instruction: string, files: readonly string[]): Task | undefined {
  if (files.some((file) => mentions(instruction, file))) return undefined
  const save = saveTarget(instruction, files)
  const sequence = findSequence(instruction)
  if (sequence) return { kind: 'sequence', sequence, save }
  const expression = findExpression(instruction.replace(FILE_NAME, ' '))
  // With a file there, numbers with a sign between them may be about its data.
  const asked = files.length === 0 || /\b(what is|what's|compute|calculate|how much)\b/i.test(instruction)
  return expression && asked ? { kind: 'arithmetic', expression, save } : undefined
}

/** The file after `save … to`. */
function saveTarget(instruction: string, files: readonly string[]): string | undefined {
  const [phrase] = /\b(?:save|write|store|put)\b[^?!]*\b(?:to|as|into|in)\b.*$/is.exec(instruction) ?? []
  const name = phrase?.match(FILE_NAME)?.find((found) => !files.includes(found))
  return name && outputPath(name)
}

function question(instruction: string, files: readonly string[]): Task | undefined {
  const save = saveTarget(instruction, files)
  const named = files.find((file) => mentions(instruction, file))
  const strange = instruction.match(FILE_NAME)?.find((name) => outputPath(name) !== save)
  if (!named && strange) return { kind: 'missing_file', name: strange, attached: files }
  const asks = DATA_WORDS.test(instruction) || (files.length === 1 && instruction.split(/\s+/).length >= 3)
  if (!named && !asks) return undefined
  if (!named && files.length > 1) return { kind: 'which_file', attached: files }
  const file = named ?? files[0]
  return file === undefined ? undefined : { kind: 'data', file, question: questionIn(instruction, file, save), save }
}

/** Without file names and the wish to save: neither says what to compute. */
function questionIn(instruction: string, file: string, save: string | undefined): string {
  const asked = save
    ? instruction.replace(/[,;.]?\s*(?:and\s+)?\b(?:save|write|store|put)\b[^?!]*$/is, ' ')
    : instruction
  return [file, baseName(file), ...stems(file)]
    .reduce((text, name) => text.replaceAll(name, ' '), asked)
    .replace(FILE_NAME, ' ')
}

/** By its name, or by its name without the ending (`seattle-weather`, `seattle weather`). */
function mentions(instruction: string, file: string): boolean {
  const text = instruction.toLowerCase()
  return [baseName(file), ...stems(file)].some((name) => text.includes(name.toLowerCase()))
}

/** Only names of several words: one word may be any word of the instruction. */
function stems(file: string): string[] {
  const stem = baseName(file).replace(/\.[^.]*$/, '')
  return /[-_ ]/.test(stem) ? [stem, stem.replace(/[-_]/g, ' ')] : []
}

function baseName(file: string): string {
  return file.split('/').at(-1)!
}
