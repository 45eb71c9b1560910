/** A file operation's failure in words for the model; what it can't act on is thrown on. */
import { withoutEnd } from '../domain/trim.ts'
import { SandboxError } from '../sandbox/port.ts'

/** `path` as the model wrote it. Throws `error` again where it is lost infrastructure, a lost lease or a bug. */
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
      return `\`${path}\` was not written, for want of room. ${sentence(error)} Remove files that are no longer needed.`
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

/** The sandbox's messages end with a full stop, or not. */
function sentence(error: SandboxError): string {
  return `${withoutEnd(error.message, '.')}.`
}
