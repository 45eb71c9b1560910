/** Failures of file operations as messages for the model. */
import { withoutEnd } from '../domain/trim.ts'
import { SandboxError } from '../sandbox/port.ts'

/** `path`: as the model wrote it. Rethrows errors that the model can't act on: lost infrastructure, a lost lease, bugs. */
export function fileFailure(error: unknown, path: string): string {
  if (!(error instanceof SandboxError)) throw error
  switch (error.code) {
    case 'not_found':
      return `There is no file \`${path}\`.`
    case 'not_a_file':
      return `\`${path}\` is not a regular file (a directory, a link or a device).`
    case 'too_large':
      return `\`${path}\` is too large for this tool; read the part you need with code_execution.`
    case 'no_space':
      return `\`${path}\` was not written: there is not enough space. ${sentence(error)} Remove files that are no longer needed.`
    case 'invalid_path':
      return `\`${path}\` is not a usable path: ${sentence(error)} Give a path relative to the working directory, such as \`outputs/report.md\`.`
    case 'denied':
      return `\`${path}\` can't be written or read here: ${sentence(error)} The working directory and /tmp are writable.`
    case 'unavailable':
    case 'lost':
    case 'stale':
      throw error
    default:
      throw error.code satisfies never
  }
}

/** The error's message with exactly one full stop at the end. */
function sentence(error: SandboxError): string {
  return `${withoutEnd(error.message, '.')}.`
}
