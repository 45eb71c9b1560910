/** Regular expressions that are not proven linear, each with what bounds its input. */

export interface Exception {
  /** A file below src, or a directory, which ends with `/`. */
  readonly place: string
  /** The literal between its slashes, or the call of `RegExp`, as in the source. Default: all in the file or directory. */
  readonly pattern?: string
  readonly bound: string
}

export const EXCEPTIONS: readonly Exception[] = [
  {
    place: 'demo/',
    bound:
      'The first 1,000 characters of an instruction (MAX_READ in understand.ts), and figures of at most 20 characters.',
  },
  {
    place: 'demo/transcript.ts',
    pattern: String.raw`^Files in the working directory:[ \t]*\n((?:[ \t]*- .*(?:\n|$))+)`,
    bound: '200,000 characters (limits.instructionChars). Linear: it begins only at lines, and no line is read twice.',
  },
  {
    place: 'egress/authorities.ts',
    pattern: '-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----',
    bound: 'A file of the operator, read once at start.',
  },
  {
    place: 'skills/skill-file.ts',
    pattern: String.raw`^(name|description|license|compatibility|allowed-tools):[ \t]+([^\s"'|>[{#&*!][^\n]*)$`,
    bound: 'The front matter of a skill. Linear: it begins only at lines, and the blanks end where the text begins.',
  },
  {
    place: 'domain/network.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source contains it.
    pattern: 'new RegExp(`^(?=.{1,253}$)${LABEL}(\\\\.${LABEL})*$`)',
    bound: '253 characters, by its own first group; each label is at most 63.',
  },
  {
    place: 'models/providers/',
    bound:
      'The first 1,000 characters of a provider’s error message (MAX_ERROR_CHARACTERS), or a name from the configuration.',
  },
  {
    place: 'sandbox/python-bundle.ts',
    bound: 'Source files of Errand itself, read when the sandbox host starts.',
  },
  {
    place: 'sandbox/cgroups.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source contains it.
    pattern: "new RegExp(`^${name} (\\\\d+)$`, 'm')",
    bound: 'A file of the kernel.',
  },
]
