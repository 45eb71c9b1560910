/** SKILL.md by the convention: errors name the file, field and rule; unusual forms are warnings. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readSkillFile } from '../../src/skills/skill-file.ts'

const NAME = 'name: pdf\n'
const DESCRIPTION = 'description: Reads PDFs. Use it for PDFs.\n'
const file = (frontMatter: string, rest = '\n# How\n') => `---\n${frontMatter}---\n${rest}`

function read(text: string | Uint8Array, folder?: string) {
  const { skill, problems } = readSkillFile(Buffer.from(text as string), 'SKILL.md', folder)
  const of = (kind: string) => problems.filter(({ severity }) => severity === kind).map(({ message }) => message)
  return { skill, errors: of('error'), warnings: of('warning') }
}

it('accepts the smallest skill', () => {
  const { skill, errors, warnings } = read(file(NAME + DESCRIPTION), 'pdf')
  expect([errors, warnings]).toEqual([[], []])
  expect(skill).toEqual({
    name: 'pdf',
    meta: { description: 'Reads PDFs. Use it for PDFs.', allowedTools: [] },
    instructions: '# How',
  })
})

it('reads every field as a string, whatever its YAML type', () => {
  const { skill, errors, warnings } = read(
    file(
      `${NAME + DESCRIPTION}license: MIT\ncompatibility: Python 3.14+\nmetadata:\n  version: 1.0\n  on: yes\nallowed-tools: Bash(git add:*) Read mcp__tracker__find\n`,
    ),
  )
  expect([errors, warnings]).toEqual([[], []])
  expect(skill!.meta).toMatchObject({
    license: 'MIT',
    compatibility: 'Python 3.14+',
    metadata: { version: '1.0', on: 'yes' },
    allowedTools: ['Bash(git add:*)', 'Read', 'mcp__tracker__find'],
  })
})

describe('rejects', () => {
  const long = 'x'.repeat(501)
  it.each([
    ['no front matter', '# PDF', /^SKILL\.md: does not begin with front matter/],
    ['nothing', '', /does not begin with front matter/],
    ['front matter without an end', `---\n${NAME}`, /without an end/],
    ['front matter that is a list', file('- a\n'), /must be a map/],
    ['front matter that is no YAML', file('name: "pdf\n'), /the front matter is not valid YAML: line \d+: /],
    ['a tab for an indent', file(`${NAME + DESCRIPTION}metadata:\n\ta: b\n`), /is not valid YAML/],
    ['no name', file(DESCRIPTION), /`name` is missing; it must be 1 to 64/],
    ['no description', file(NAME), /`description` is missing/],
    ['an empty description', file(`${NAME}description: "  "\n`), /`description` is missing/],
    ['a description that is a map', file(`${NAME}description:\n  a: b\n`), /`description` must be a text/],
    ['a description beyond all measure', file(`${NAME}description: ${'x'.repeat(5000)}\n`), /has 5000 characters/],
    [
      'a long compatibility',
      file(`${NAME + DESCRIPTION}compatibility: ${long}\n`),
      /`compatibility` has 501 char.*500/,
    ],
    ['a license that is a list', file(`${NAME + DESCRIPTION}license: [a, b]\n`), /`license` must be a text/],
    ['metadata that is a text', file(`${NAME + DESCRIPTION}metadata: yes\n`), /`metadata` must be a map/],
    ['tools that are a map', file(`${NAME + DESCRIPTION}allowed-tools:\n  Bash: yes\n`), /`allowed-tools` must be/],
    ['a name twice', file(`${NAME + NAME + DESCRIPTION}`), /is not valid YAML/],
    ['aliases that multiply', file(`${NAME + DESCRIPTION}${bomb()}`), /is not valid YAML/],
    ['a depth of thousands', file(`${NAME + DESCRIPTION}x: ${'['.repeat(20_000)}\n`), /is not valid YAML/],
    ['front matter of a megabyte', file(`${NAME + DESCRIPTION}x: ${'y'.repeat(900_000)}\n`), /at most 65536/],
    ['two megabytes', file(NAME + DESCRIPTION, 'x'.repeat(2_000_000)), /at most 1048576/],
    ['Latin-1', Buffer.from(file(`${NAME}description: f\xfcr PDFs\n`), 'latin1'), /is not UTF-8/],
  ])('%s', (_what, text, message) => {
    const { skill, errors } = read(text)
    expect(skill).toBeUndefined()
    expect(errors.join('\n')).toMatch(message)
    for (const error of errors) expect(error).toMatch(/^SKILL\.md: .*\.$/s)
  })

  it.each([
    'PDF',
    '-pdf',
    'pdf-',
    'pdf--tools',
    'pdf tools',
    'pdf_tools',
    'pdf.tools',
    '../pdf',
    'pdf/x',
    'größe',
    'x'.repeat(65),
    '@pdf',
    'pdf@1',
  ])('the name %s', (name) => {
    expect(read(file(`name: ${JSON.stringify(name)}\n${DESCRIPTION}`)).errors.join()).toMatch(/`name` is "/)
  })

  it('all problems at once', () => {
    expect(read(file('name: X\nlicense: [a]\nmetadata: x\n')).errors).toHaveLength(4)
  })
})

describe('accepts with a warning', () => {
  it.each([
    ['another folder', file(NAME + DESCRIPTION), /`name` is "pdf", but the folder is "folder"/],
    ['an unknown field', file(`${NAME + DESCRIPTION}version: 2\n`), /`version` is not a field/],
    ['a list of tools', file(`${NAME + DESCRIPTION}allowed-tools: [Bash, Read]\n`), /`allowed-tools` is a list/],
    ['a long description', file(`${NAME}description: ${'x'.repeat(1025)}\n`), /has 1025 characters.*1024/],
    ['a colon in a text', file(`${NAME}description: Use it when: asked\n`), /is not valid YAML \(line 3/],
    ['metadata with depth', file(`${NAME + DESCRIPTION}metadata:\n  a: [1]\n`), /`metadata\.a` is not a string/],
  ])('%s', (_what, text, message) => {
    const { skill, errors, warnings } = read(text, 'folder')
    expect(errors).toEqual([])
    expect(skill!.name).toBe('pdf')
    expect(warnings.join('\n')).toMatch(message)
  })

  it('the text without loss', () => {
    const { skill } = read(file(`${NAME}description: Use it when: "asked", or 'needed' \\ so\n`))
    expect(skill!.meta.description).toBe(`Use it when: "asked", or 'needed' \\ so`)
    expect(read(file(`${NAME + DESCRIPTION}allowed-tools: [Bash, Read]\n`)).skill!.meta.allowedTools).toEqual([
      'Bash',
      'Read',
    ])
    expect(read(file(`${NAME + DESCRIPTION}allowed-tools: Read, Grep,Bash(a b)\n`)).skill!.meta.allowedTools).toEqual([
      'Read',
      'Grep',
      'Bash(a b)',
    ])
  })
})

it('treats front matter as data: no tag creates an object, no name reaches a prototype', () => {
  const text = file(`${NAME + DESCRIPTION}metadata:\n  __proto__: polluted\n  a: !!js/function "function () {}"\n`)
  const { skill } = read(text)
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(typeof (skill?.meta.metadata?.a ?? '')).toBe('string')
})

it('does not end the front matter at a later rule, and accepts Windows line endings', () => {
  const text = file(NAME + DESCRIPTION, '\nOne\n\n---\n\nTwo\n')
  for (const each of [text, `\ufeff${text.replaceAll('\n', '\r\n')}`]) {
    expect(read(each).skill!.instructions).toBe('One\n\n---\n\nTwo')
  }
})

it('never throws, whatever the input', () => {
  const lines = fc.array(
    fc.oneof(
      fc.constantFrom('---', 'name: a', 'description: b', 'metadata:', '  a: b', '- x', '&a *a', '"'),
      fc.string(),
    ),
  )
  fc.assert(
    fc.property(lines, (all) => {
      const { skill, problems } = readSkillFile(Buffer.from(`---\n${all.join('\n')}\n---\n`), 'SKILL.md')
      expect(skill === undefined).toBe(problems.some(({ severity }) => severity === 'error'))
    }),
  )
})

function bomb(): string {
  const levels = Array.from({ length: 9 }, (_level, i) => `b${i}: &b${i} [${Array(9).fill(i ? `*b${i - 1}` : 'x')}]`)
  return `${levels.join('\n')}\n`
}
