/**
 * Long tool results. The whole text is in a file of the sandbox, and the model gets its beginning, its end, and the path. The
 * log has the text up to `outputBytes`. Pure functions, so that a restored conversation equals the first one.
 */
import { endOfCharacter, startOfCharacter } from './utf8.ts'

/** The file with the whole text of a result. */
export interface FullResult {
  /** Absolute path in the run's sandbox. The file exists as long as that sandbox. */
  readonly path: string
  /** Size of the file. */
  readonly bytes: number
}

/** A result with more bytes is written to a file, if there is a sandbox; sandbox/runner/result_file.py has the same number. */
export const LONG_RESULT_BYTES = 16 * 1024
/** Bytes of the beginning, and of the end, that the model gets: about 2,000 tokens each. */
const SHOWN_BYTES = 6 * 1024

/** The text of a result that the model gets. */
export function shownToModel({ output, full }: { readonly output: string; readonly full?: FullResult }): string {
  if (!full) return output
  const size = `${full.bytes.toLocaleString('en')} bytes`
  const bytes = Buffer.from(output)
  if (bytes.length <= 2 * SHOWN_BYTES) return `${output}\n[The whole text, ${size}, was written to ${full.path}.]`
  const mark = `[… The middle is left out here. The whole text, ${size}, was written to ${full.path}: read or search the parts that you need …]`
  return [headOf(bytes), mark, tailOf(bytes)].join('\n')
}

/** Ends with a whole line if the last one does not take up half of the room. */
function headOf(bytes: Buffer): string {
  const line = bytes.lastIndexOf('\n', SHOWN_BYTES)
  return bytes.toString('utf8', 0, line > SHOWN_BYTES / 2 ? line : startOfCharacter(bytes, SHOWN_BYTES))
}

function tailOf(bytes: Buffer): string {
  const from = bytes.length - SHOWN_BYTES
  const line = bytes.indexOf('\n', from - 1) + 1
  return bytes.toString('utf8', line > 0 && line < from + SHOWN_BYTES / 2 ? line : endOfCharacter(bytes, from))
}
