/** Checks skills over HTTP: upload, list, versions, use in a run and in the sandbox, deletion. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Answer, errorOf, type Server, startServer } from '../support/server.ts'
import { ALL_TOOLS, bash, outputsOf, readFile, scripted, writeFile } from '../support/tool-run.ts'
import { skillText, type ZipEntry, zip } from '../support/zip.ts'

let provider: FakeProvider
let server: Server
let strangerKey: string
beforeAll(async () => {
  provider = await openFakeProvider()
  server = await startServer({ provider })
  strangerKey = await server.createKey('strangers')
})
afterAll(async () => {
  await server.stop()
  await provider.close()
})

const SKILLS = '/v1beta/skills'
const ZIP = { 'content-type': 'application/zip' }

async function send(
  body: string | FormData | Blob | Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>> = ZIP,
): Promise<Answer> {
  const response = await fetch(server.url + SKILLS, {
    method: 'POST',
    headers: { 'x-svc-api-key': server.key, ...headers },
    body,
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

async function upload(entries: readonly ZipEntry[]): Promise<Answer['body']> {
  const { status, body, text } = await send(zip(entries))
  expect(status, text).toBe(200)
  return body
}

const skill = (name: string, ...more: ZipEntry[]): ZipEntry[] => [
  { name: `${name}/SKILL.md`, data: skillText(name) },
  ...more,
]

const use = (name: string, path?: string) => ({
  name: 'skill',
  args: { name, ...(path === undefined ? {} : { path }) },
})

async function run(turns: Parameters<typeof scripted>[1], request: object) {
  const instruction = scripted(provider, turns)
  const answer = await server.post('/v1beta/interactions', { instruction, ...request })
  const calls = provider.requests.filter(({ body }) => JSON.stringify(body.messages).includes(instruction))
  return { ...answer, outputs: outputsOf(answer.body?.executionTrace ?? []), calls }
}

describe('uploading a skill', () => {
  it('accepts a zip with one top folder, and returns the fields of its front matter', async () => {
    const more = 'license: MIT\ncompatibility: Python 3\nmetadata:\n  version: 1.0\nallowed-tools: Bash(git:*) Read\n'
    const body = await upload([
      { name: 'greeting/', mode: 0o040_755 },
      { name: 'greeting/SKILL.md', data: skillText('greeting', 'Say it.', more) },
      { name: 'greeting/scripts/say.sh', data: '#!/bin/sh\necho said\n', mode: 0o100_755 },
      { name: 'greeting/LICENSE.txt', data: 'MIT' },
    ])
    expect(body).toMatchObject({
      name: 'greeting',
      version: 1,
      description: 'Does greeting. Use it for greeting.',
      license: 'MIT',
      compatibility: 'Python 3',
      metadata: { version: '1.0' },
      allowedTools: ['Bash(git:*)', 'Read'],
      source: 'project',
      fileCount: 3,
    })
    expect(body.digest).toMatch(/^sha256:[0-9a-f]{64}$/)
    const read = await server.get(`${SKILLS}/greeting`)
    expect(read.body).toMatchObject({ ...body, versions: [1] })
    expect(read.body.files.map(({ path, executable }: never) => [path, executable])).toEqual([
      ['LICENSE.txt', false],
      ['SKILL.md', false],
      ['scripts/say.sh', true],
    ])
  })

  it('accepts a zip with SKILL.md at its root', async () => {
    const body = await upload([{ name: 'SKILL.md', data: skillText('rooted') }])
    expect(body).toMatchObject({ name: 'rooted', version: 1, fileCount: 1 })
  })

  it('accepts the field `file` of a form and ignores other fields', async () => {
    const form = new FormData()
    form.append('note', 'hello')
    form.append('file', new Blob([zip(skill('formed'))]), 'formed.zip')
    const { status, body, text } = await send(form, {})
    expect(status, text).toBe(200)
    expect(body.name).toBe('formed')
  })

  it('returns the address of the skill in Location', async () => {
    const { headers } = await send(zip(skill('located')))
    expect((await server.get(headers.get('location')!)).body.name).toBe('located')
  })

  it('warns about deviations from the convention', async () => {
    const data = skillText('other-name', '', 'version: 2\nallowed-tools: [Read, Teleport]\n')
    const body = await upload([{ name: 'folder/SKILL.md', data }])
    const messages = body.warnings.map(({ message }: { message: string }) => message).join('\n')
    expect(messages).toContain('SKILL.md: `name` is "other-name", but the folder is "folder"')
    expect(messages).toContain('SKILL.md: `version` is not a field of the convention')
    expect(messages).toContain('SKILL.md: `allowed-tools` is a list')
    expect(messages).toContain('names Teleport, which this server does not have')
  })
})

describe('versions', () => {
  it('increase only when the content changes', async () => {
    const first = await upload(skill('counted'))
    expect((await upload(skill('counted'))).version).toBe(1)
    // Modification times, order and folder entries are not part of the content.
    expect((await upload([{ name: 'counted/' }, ...skill('counted')])).digest).toBe(first.digest)
    expect((await upload(skill('counted', { name: 'counted/a.txt', data: 'a' }))).version).toBe(2)
    expect((await upload(skill('counted', { name: 'counted/a.txt', data: 'a', mode: 0o100_755 }))).version).toBe(3)
    expect((await upload(skill('counted'))).version).toBe(4)
    const { body } = await server.get(`${SKILLS}/counted/versions`)
    expect(body.versions.map(({ version }: never) => version)).toEqual([4, 3, 2, 1])
    expect(body.versions[0].digest).toBe(first.digest)
    for (const path of [`${SKILLS}/counted@2`, `${SKILLS}/counted%402`, `${SKILLS}/counted/versions/2`]) {
      const { body: second } = await server.get(path)
      expect(second).toMatchObject({ name: 'counted', version: 2 })
      expect(second.files.map(({ path: name }: { path: string }) => name)).toEqual(['SKILL.md', 'a.txt'])
    }
  })

  it('are never reused after a deletion', async () => {
    await upload(skill('removed'))
    await upload(skill('removed', { name: 'removed/2', data: '2' }))
    expect((await server.request('DELETE', `${SKILLS}/removed@2`)).status).toBe(200)
    expect((await server.get(`${SKILLS}/removed`)).body.version).toBe(1)
    expect(errorOf(await server.get(`${SKILLS}/removed@2`)).code).toBe('not_found')
    expect((await server.request('DELETE', `${SKILLS}/removed`)).status).toBe(200)
    expect(errorOf(await server.get(`${SKILLS}/removed`)).code).toBe('not_found')
    expect(errorOf(await server.request('DELETE', `${SKILLS}/removed`)).code).toBe('not_found')
    expect((await upload(skill('removed'))).version).toBe(3)
  })

  it('are paged, and so are skills', async () => {
    for (const name of ['page-a', 'page-b', 'page-c']) await upload(skill(name))
    const names: string[] = []
    let token = ''
    do {
      const { body } = await server.get(`${SKILLS}?pageSize=2&order=asc${token && `&pageToken=${token}`}`)
      expect(body.skills.length).toBeLessThanOrEqual(2)
      names.push(...body.skills.map(({ name }: { name: string }) => name))
      token = body.nextPageToken ?? ''
    } while (token)
    expect(names.filter((name) => name.startsWith('page-'))).toEqual(['page-a', 'page-b', 'page-c'])
    expect(new Set(names).size).toBe(names.length)
  })
})

describe('in a run', () => {
  const script = { name: 'work/scripts/sum.py', data: 'print("summed", 2 + 2)\n', mode: 0o100_755 }
  const reference = { name: 'work/references/deep/more.md', data: 'The word is marmalade.\n' }

  it('the prompt has each skill’s name and description, the body is read on demand, and scripts run in the sandbox', async () => {
    const data = skillText('work', 'Run `scripts/sum.py`, then read [more](references/deep/more.md).')
    await upload([{ name: 'work/SKILL.md', data }, script, reference])
    const { body, outputs, calls } = await run(
      [
        use('work'),
        use('work', 'references/deep/more.md'),
        bash(
          'python3 /skills/work/scripts/sum.py; cat /skills/work/references/deep/more.md; ls -l /skills/work/scripts',
        ),
        readFile('/skills/work/references/deep/more.md'),
      ],
      { skills: ['work'], tools: ALL_TOOLS },
    )
    expect(body.status).toBe('completed')
    expect(body.warnings).toEqual([])
    const [system] = calls[0]!.body.messages as { role: string; content: string }[]
    expect(system!.content).toContain('- work: Does work. Use it for work.')
    expect(system!.content).not.toContain('scripts/sum.py')
    const [instructions, more, ran, read] = outputs
    expect(instructions).toContain('Run `scripts/sum.py`, then read [more]')
    expect(instructions).toContain('/skills/work in the sandbox')
    expect(instructions).toContain('- scripts/sum.py (')
    expect(instructions).not.toContain('description:')
    expect(more).toContain('The word is marmalade.')
    expect(ran).toContain('summed 4\nThe word is marmalade.')
    expect(ran).toMatch(/-rwxr-xr-x .* sum\.py/)
    expect(read).toContain('The word is marmalade.')
  })

  it('the version and the digest of each skill are recorded', async () => {
    const { version, digest } = (await server.get(`${SKILLS}/work`)).body
    const { body } = await run([], { skills: ['work'] })
    expect(body.resolved.skills).toEqual([`work@${version}`])
    expect(body.resolved.skillDigests).toEqual({ [`work@${version}`]: digest })
  })

  it.each([
    ['written to', 'echo x > /skills/work/SKILL.md'],
    ['added to', 'touch /skills/work/scripts/new'],
    ['removed', 'rm -rf /skills/work/scripts'],
    ['made writable', 'chmod -R 777 /skills/work'],
    ['moved', 'mv /skills/work /skills/else'],
    ['linked over', 'ln -sf /workspace /skills/work/references/here'],
  ])('the skill’s folder cannot be %s, neither for this run nor for the next', async (_what, code) => {
    const look = bash('cd /skills/work && find . -type f | sort | xargs sha256sum; ls -lR')
    const { outputs } = await run([look, bash(code), writeFile('/skills/work/SKILL.md', 'x'), look], {
      skills: ['work'],
      tools: ALL_TOOLS,
    })
    expect(outputs[1]).toMatch(/Read-only file system|Operation not permitted|Permission denied/)
    expect(outputs[3]).toBe(outputs[0])
    const next = await run([look], { skills: ['work'], tools: ALL_TOOLS })
    expect(next.outputs[0]).toBe(outputs[0])
  })

  it('only the requested skills are available', async () => {
    await upload(skill('unnamed', { name: 'unnamed/secret.txt', data: 'not for you' }))
    const { outputs } = await run(
      [
        bash('ls /skills; find /skills /workspace /tmp /errand -name secret.txt; true'),
        use('unnamed'),
        use('work', '../unnamed/secret.txt'),
      ],
      { skills: ['work'], tools: ALL_TOOLS },
    )
    expect(outputs[0]).toBe('work')
    expect(outputs[1]).toContain('`name` must be one of work')
    expect(outputs[2]).toContain('has no file')
    expect(outputs.join()).not.toContain('not for you')
  })

  it('instructions and files are available without any other tool', async () => {
    const { body, outputs } = await run([use('work'), use('work', './scripts/sum.py')], { skills: ['work'] })
    expect(body.status).toBe('completed')
    expect(outputs[0]).toContain('Run `scripts/sum.py`')
    expect(outputs[0]).toContain('No sandbox is enabled')
    expect(outputs[1]).toContain('print("summed", 2 + 2)')
    expect(body.usage.sandbox_ms).toBe(0)
  })

  it('the skill tool is not offered without skills', async () => {
    const { calls } = await run([], { tools: ALL_TOOLS })
    const { tools } = calls[0]!.body as unknown as { tools: { function: { name: string } }[] }
    expect(tools.map(({ function: { name } }) => name)).not.toContain('skill')
  })

  it('long instructions are returned in parts, each with how to continue', async () => {
    const lines = Array.from({ length: 4000 }, (_line, i) => `Line ${i + 1} of many, many more.`).join('\n')
    await upload([{ name: 'long/SKILL.md', data: skillText('long', lines) }])
    const rest = { name: 'skill', args: { name: 'long', startLine: 3999 } }
    const { outputs } = await run([use('long'), rest], { skills: ['long'] })
    expect(Buffer.byteLength(outputs[0]!)).toBeLessThan(70_000)
    expect(outputs[0]).toMatch(/lines 1-\d+ of 4000[\s\S]*continue with startLine \d+\]$/)
    expect(outputs[1]).toContain('Line 4000 of many')
  })
})

describe('pins', () => {
  const version = (word: string) => [{ name: 'pinned/SKILL.md', data: skillText('pinned', `The word is ${word}.`) }]

  it('select a version: `name@version` is that version, `name` the newest at acceptance', async () => {
    await upload(version('one'))
    await upload(version('two'))
    for (const [ref, word, pin] of [
      ['pinned', 'two', 'pinned@2'],
      ['pinned@1', 'one', 'pinned@1'],
    ] as const) {
      const { body, outputs } = await run([use('pinned')], { skills: [ref] })
      expect(outputs[0]).toContain(`The word is ${word}.`)
      expect(body.resolved.skills).toEqual([pin])
    }
  })

  it('keep the version of a run through a later upload and a deletion', async () => {
    await upload(version('three'))
    const gate = Promise.withResolvers<void>()
    const marker = '[keeps]'
    provider.when(
      marker,
      { toolCalls: [bash('cat /skills/pinned/SKILL.md')], hold: gate.promise },
      { toolCalls: [use('pinned')] },
      { text: 'Done.' },
    )
    const started = await server.post('/v1beta/interactions', {
      instruction: marker,
      skills: ['pinned'],
      tools: ALL_TOOLS,
      background: true,
    })
    await upload(version('four'))
    expect((await server.request('DELETE', `${SKILLS}/pinned`)).status).toBe(200)
    gate.resolve()
    const events = await (await server.stream(`/v1beta/interactions/${started.body.interactionId}:stream`)).all()
    const outputs = outputsOf(events.map(({ event, data }) => ({ type: event, output: data.output as string })))
    expect(outputs).toHaveLength(2)
    for (const output of outputs) expect(output).toContain('The word is three.')
    expect((await run([], { skills: ['pinned'] })).body.warnings[0].code).toBe('unknown_skill')
  })

  it('are stored in an agent as they were sent, with a warning for each unknown one', async () => {
    await upload(skill('stored'))
    const { body } = await server.post('/v1beta/agents', { skills: ['stored@1', 'missing', 'stored@9'] })
    expect(body.skills).toEqual(['stored@1', 'missing', 'stored@9'])
    expect(body.warnings.map(({ code, param }: never) => [code, param])).toEqual([
      ['unknown_skill', 'skills[1]'],
      ['unknown_skill', 'skills[2]'],
    ])
    const { body: ran } = await run([], { agentId: body.id })
    expect(ran.resolved.skills).toEqual(['stored@1'])
  })
})

describe('warnings and strict handling', () => {
  it('an unknown skill causes a warning, and 400 under strict handling', async () => {
    const request = { instruction: scripted(provider, []), skills: ['no-such-skill'] }
    const { body } = await server.post('/v1beta/interactions', request)
    expect(body.warnings).toEqual([expect.objectContaining({ code: 'unknown_skill', param: 'skills[0]' })])
    const strict = await server.post('/v1beta/interactions', request, { prefer: 'handling=strict' })
    expect(errorOf(strict)).toMatchObject({ status: 400, param: 'skills[0]' })
  })

  it('a tool that the skill requires and the run lacks causes a warning', async () => {
    const data = skillText('needy', '', 'allowed-tools: Bash(git:*) Write WebSearch Task\n')
    await upload([{ name: 'needy/SKILL.md', data }])
    const without = await run([use('needy')], { skills: ['needy'], tools: ['file_write'] })
    const [warning] = without.body.warnings
    expect(warning).toMatchObject({ code: 'skill_tool_missing', param: 'skills[0]' })
    expect(warning.message).toContain('Bash(git:*), WebSearch')
    expect(without.outputs[0]).toContain('Write is file_write')
    const enabled = await run([], { skills: ['needy'], tools: ['code_execution'] })
    expect(enabled.body.warnings[0].message).not.toContain('Bash')
  })

  it('a repeated skill is used once, in the version that was named first', async () => {
    await upload(skill('twice'))
    await upload(skill('twice', { name: 'twice/2', data: '2' }))
    const { body } = await run([], { skills: ['twice@1', 'twice', 'twice@1'] })
    expect(body.resolved.skills).toEqual(['twice@1'])
    expect(body.warnings).toEqual([expect.objectContaining({ code: 'skill_repeated', param: 'skills[1]' })])
  })
})

describe('another project', () => {
  it('gets the same answer for a skill of this project as for one that does not exist', async () => {
    await upload(skill('private'))
    const asStranger = { 'x-svc-api-key': strangerKey }
    const calls = (name: string) =>
      [
        ['GET', `${SKILLS}/${name}`],
        ['GET', `${SKILLS}/${name}@1`],
        ['GET', `${SKILLS}/${name}/versions`],
        ['GET', `${SKILLS}/${name}/versions/1`],
        ['DELETE', `${SKILLS}/${name}`],
        ['DELETE', `${SKILLS}/${name}@1`],
      ] as const
    for (const [i, [method, path]] of calls('private').entries()) {
      const refused = errorOf(await server.request(method, path, undefined, asStranger))
      const [, missing] = calls('nowhere')[i]!
      const absent = errorOf(await server.request(method, missing, undefined, asStranger))
      expect({ ...refused, message: refused.message.replace('private', 'nowhere') }).toEqual(absent)
      expect(refused.code).toBe('not_found')
    }
    expect((await server.get(SKILLS, asStranger)).body.skills).toEqual([])
    const ran = await server.post(
      '/v1beta/interactions',
      { instruction: scripted(provider, []), skills: ['private'] },
      asStranger,
    )
    expect(ran.body.warnings[0].message).toBe('No skill "private" is registered. The run goes on without it.')
    expect((await server.get(`${SKILLS}/private`)).status).toBe(200)
  })
})

describe('an upload is refused', () => {
  it.each([
    ['no body', '', 400, undefined],
    ['no zip', 'this is no zip', 400, 'file'],
    ['a zip that is cut', zip(skill('cut')).subarray(0, 60), 400, 'file'],
    ['a zip without SKILL.md', zip([{ name: 'a/readme.md', data: 'x' }]), 400, 'file'],
    ['two top folders', zip([...skill('one'), ...skill('two')]), 400, 'file'],
    ['a file beside the top folder', zip([...skill('one'), { name: 'b.txt', data: 'x' }]), 400, 'file'],
    ['no front matter', zip([{ name: 'SKILL.md', data: '# Hello' }]), 400, 'file'],
    ['an empty zip', zip([]), 400, 'file'],
  ] as const)('if it is %s', async (_what, body, status, param) => {
    const error = errorOf(await send(body))
    expect(error).toMatchObject({ code: 'invalid_request', status })
    expect(error.param).toBe(param)
  })

  it.each([
    ['text/plain', 'text/plain'],
    ['JSON', 'application/json'],
    ['nothing', ''],
  ])('with 415 if its type is %s', async (_what, type) => {
    const body = new Blob([zip(skill('typed'))])
    expect(errorOf(await send(body, type ? { 'content-type': type } : {}))).toMatchObject({ status: 415 })
  })

  it('if it is a form without the field, or with an invalid boundary', async () => {
    const form = new FormData()
    form.append('zip', new Blob([zip(skill('formed'))]), 'x.zip')
    expect(errorOf(await send(form, {}))).toMatchObject({ status: 400, param: 'file' })
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=x']) {
      expect(errorOf(await send('nothing of the sort', { 'content-type': type })).status).toBe(400)
    }
  })

  it('and the answer lists every error of its front matter', async () => {
    const data = '---\nname: Bad_Name\nlicense: [a]\n---\n'
    const error = errorOf(await send(zip([{ name: 'SKILL.md', data }])))
    const messages = (error.details as { message: string }[]).map(({ message }) => message)
    expect(messages).toHaveLength(3)
    expect(messages[0]).toMatch(/^SKILL\.md: `name` is "Bad_Name"; it must be 1 to 64 lower-case letters/)
    expect(messages[1]).toMatch(/`description` is missing/)
    expect(messages[2]).toMatch(/`license` must be a text/)
    expect(error.message).toBe(messages[0])
  })
})
