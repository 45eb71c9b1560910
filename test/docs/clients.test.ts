/** docs/clients.md and the generated client references describe every method, option, error and event of both clients. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { DESCRIPTIONS } from '../../site/client-descriptions.ts'
import { pythonMethods, typescriptMethods } from '../../site/client-methods.ts'
import { EVENTS } from '../../src/http/wire/2026-05-20/events.ts'
import { ROOT } from './blocks.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const PAGE = read('docs/clients.md').replaceAll(/^```[\s\S]*?^```/gm, '')
const methods = [...typescriptMethods(), ...pythonMethods()].flatMap(({ methods }) => methods)

describe('the client reference', () => {
  test('describes every method of both clients, and no other', () => {
    expect([...new Set(methods.map(({ key }) => key))].sort()).toEqual(Object.keys(DESCRIPTIONS).sort())
  })

  test('has the signature of each method', () => {
    for (const { call, signature } of methods) expect(signature, call).toContain(call.split('.').at(-1)!)
  })

  test('finds the methods that the clients export', () => {
    const calls = methods.map(({ call }) => call)
    expect(calls).toEqual(
      expect.arrayContaining(['errand.interactions.create', 'stream.final', 'verifyWebhook', 'verify_webhook']),
    )
    expect(calls.length).toBeGreaterThan(70)
  })
})

describe('docs/clients.md', () => {
  const named = new Set([...PAGE.matchAll(/`([^`]+)`/g)].map(([, text]) => text))

  test('names every option of TypeScript', () => {
    const transport = read('clients/typescript/src/transport.ts')
    const interactions = read('clients/typescript/src/interactions.ts')
    const options = [
      [transport, 'ClientOptions'],
      [transport, 'RequestOptions'],
      [interactions, 'RunOptions'],
    ].flatMap(([source = '', name = '']) => {
      const body = new RegExp(`interface ${name}\\b[^{]*\\{([\\s\\S]*?)\\n\\}`).exec(source)?.[1] ?? ''
      return [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, option]) => option!)
    })
    expect(options.length).toBeGreaterThan(8)
    for (const option of options) expect(named).toContain(option)
  })

  test('names every option of Python', () => {
    const source = read('clients/python/src/errand/_sync.py')
    const parameters = (after: RegExp) =>
      [...(after.exec(source)?.[1] ?? '').matchAll(/^ {8}(\w+):/gm)].map(([, name]) => name!)
    const client = parameters(/class Errand:[\s\S]*?def __init__\(([\s\S]*?)\n {4}\)/)
    const run = parameters(/def create\(([\s\S]*?)\n {4}\)/).slice(-4)
    expect([...client, ...run].length).toBeGreaterThan(8)
    for (const option of [...client, ...run]) expect(named).toContain(option)
  })

  test('names every error class of both clients', () => {
    const typescript = [...read('clients/typescript/src/errors.ts').matchAll(/^export class (\w+)/gm)]
    const python = [...read('clients/python/src/errand/errors.py').matchAll(/^class (\w+)/gm)]
    for (const [, name] of [...typescript, ...python]) expect(named).toContain(name)
  })

  test('names every event', () => {
    for (const { name } of EVENTS) expect(named).toContain(name)
  })
})
