import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { warnings } from '../../src/config/nodes.ts'
import { ConfigError, readConfig, unsupported } from '../../src/config/read-config.ts'
import { configReference } from '../../src/config/reference.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import type { Config } from '../../src/config.ts'
import { DEFAULT_LIMITS } from '../../src/domain/limits.ts'

const ROOT = join(import.meta.dirname, '../..')

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'errand-config-'))
})
afterEach(() => {
  rmSync(cwd, { recursive: true })
})

function read(env: Record<string, string> = {}, yaml?: string): Config {
  if (yaml !== undefined) writeFileSync(join(cwd, 'errand.yaml'), yaml)
  return readConfig({ env, cwd })
}

function problems(env: Record<string, string>, yaml?: string): readonly string[] {
  try {
    read(env, yaml)
  } catch (error) {
    if (error instanceof ConfigError) {
      expect(error.message).toBe(error.problems.join('\n'))
      return error.problems
    }
    throw error
  }
  return []
}

describe('without any configuration', () => {
  test('everything has the default that the contract names', () => {
    const config = read()
    expect(config).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      dataDir: join(cwd, 'data'),
      role: 'all',
      demo: true,
      leaseS: 30,
      log: 'info',
      models: {},
      defaultModel: 'svc-3.5-flash',
      limits: DEFAULT_LIMITS,
      sandbox: { driver: 'bubblewrap' },
    })
    expect(config.tls).toBeUndefined()
    expect(config.limits.sandbox.files).toEqual({ default: 50_000, min: 100, max: 50_000 })
    expect(config.databaseUrl).toBeUndefined()
  })

  test('it is frozen through and through', () => {
    const config = read()
    expect(Object.isFrozen(config)).toBe(true)
    expect(Object.isFrozen(config.limits.maxTurnDuration)).toBe(true)
  })
})

describe('the two places', () => {
  const everywhere = `
console: {signUp: true, oidc: {issuer: 'https://id.example', clientId: c, clientSecret: s, name: Work}}
port: 1
host: localhost
publicUrl: http://localhost:1/
tls: {cert: c.pem, key: k.pem}
dataDir: d
skillsDir: k
databaseUrl: postgres://h/d
databasePool: 20
databaseListenUrl: postgres://direct/d
blobsUrl: s3://bucket
secret: ${'s'.repeat(32)}
role: worker
demo: off
leaseS: 5
drainS: 6
log: debug
workerSlots: 7
defaultModel: m
models: {m: {provider: demo}}
sandbox: {driver: docker, memoryMiB: 100, cpus: 0.5, pids: 20, workspaceMiB: 30, files: 200, outputBytes: 4096, max: {memoryMiB: 200, cpus: 2, pids: 21, workspaceMiB: 31, files: 201, outputBytes: 4097}, pool: 1, maxOpen: 2, rootfs: /r, forkServer: off, network: [API.Example.com, '*.example.org.:8443'], networkBytes: 5000}
files:
  types: [text/csv, 'image/*']
  s3: {allow: [a-bucket/in], region: eu-1, endpoint: 'https://s3.example', accessKeyIdEnv: A, secretAccessKeyEnv: B, pathStyle: off}
  gs: {allow: {'*': [a-bucket]}, endpoint: 'https://gs.example', accessKeyIdEnv: C, secretAccessKeyEnv: D, credentialsFile: g.json}
search: {provider: searxng, baseUrl: 'http://127.0.0.1:8888/', apiKeyEnv: K}
browser: {memoryMiB: 300, pids: 200, executable: /opt/chromium}
egress: {allowPrivate: ['10.1.0.0/16', '127.0.0.1:9000'], caFile: ca.pem}
metrics: {port: 9, key: 0123456789abcdef}
limits:
${SETTINGS.filter((setting) => /^limits\.\w+$/.test(setting.path))
  .map((setting) => `  ${setting.path.slice(7)}: 4242`)
  .join('\n')}
  maxTurnDuration: {default: 3, min: 2, max: 4}
  maxOutputTokens: {default: 30, min: 20, max: 40}
  maxToolDuration: {default: 5, min: 4, max: 6}
`

  test('every setting can be set in the file', () => {
    const config = read({}, everywhere)
    expect(config).toMatchObject({
      port: 1,
      publicUrl: 'http://localhost:1',
      demo: false,
      workerSlots: 7,
      defaultModel: 'm',
    })
    expect(config.tls).toEqual({ certFile: join(cwd, 'c.pem'), keyFile: join(cwd, 'k.pem') })
    expect(config.sandbox).toMatchObject({ driver: 'docker', cpus: 0.5, rootfs: '/r' })
    expect(config.search).toEqual({ provider: 'searxng', baseUrl: 'http://127.0.0.1:8888', apiKeyEnv: 'K' })
    expect(config.egress.allowPrivate).toEqual(['10.1.0.0/16', '127.0.0.1:9000'])
    expect(config.egress.caFile).toBe(join(cwd, 'ca.pem'))
    expect(config.limits.network).toEqual({ allow: ['api.example.com', '*.example.org:8443'] })
    expect(config.limits.networkBytes).toBe(5000)
    expect(config.limits.sandbox.memoryMiB).toEqual({ default: 100, min: 64, max: 200 })
    expect(config.limits).toMatchObject({ jsonDepth: 4242, maxTurnDuration: { default: 3, min: 2, max: 4 } })
    for (const { path } of SETTINGS) {
      const value = path
        .split('.')
        .reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], tableShape(config))
      expect(value, path).toBeDefined()
    }
  })

  /** `tls`, `blobsUrl` and `sandbox.max` have other names in the Config than in the file. */
  function tableShape(config: Config): unknown {
    const max = Object.fromEntries(Object.entries(config.limits.sandbox).map(([name, range]) => [name, range.max]))
    return {
      ...config,
      sandbox: { ...config.sandbox, max },
      blobsUrl: config.blobs,
      tls: { cert: config.tls?.certFile, key: config.tls?.keyFile },
    }
  }

  test('the environment wins over the file, setting by setting', () => {
    const env = {
      ERRAND_PORT: '81',
      ERRAND_DEMO: 'on',
      ERRAND_LIMITS_RUNNING_PER_PROJECT: '3',
      ERRAND_SANDBOX: 'bubblewrap',
      ERRAND_SANDBOX_MEMORY_MIB: '128',
      ERRAND_EGRESS_ALLOW_PRIVATE: '10.2.0.0/16, [::1]:80',
      ERRAND_MODELS: '{"x": {"provider": "openai-compatible", "baseUrl": "http://127.0.0.1:1/v1", "model": "y"}}',
      ERRAND_DEFAULT_MODEL: 'x',
      ERRAND_LOG: '',
    }
    const config = read(env, everywhere)
    expect(config.port).toBe(81)
    expect(config.demo).toBe(true)
    expect(config.limits).toMatchObject({ runningPerProject: 3, queuedPerProject: 4242 })
    expect(config.sandbox).toMatchObject({ driver: 'bubblewrap', memoryMiB: 128, pids: 20 })
    expect(config.search).toEqual({ provider: 'searxng', baseUrl: 'http://127.0.0.1:8888', apiKeyEnv: 'K' })
    expect(config.egress.allowPrivate).toEqual(['10.2.0.0/16', '[::1]:80'])
    expect(config.models).toEqual({
      x: { provider: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1', model: 'y' },
    })
    expect(config.log).toBe('debug')
  })

  test('the names that the contract gives are the names', () => {
    const names = SETTINGS.map((setting) => setting.env)
    const contract =
      'PORT HOST DATA_DIR DATABASE_URL BLOBS_URL PUBLIC_URL SANDBOX ROLE DEMO LEASE_S LOG SECRET TLS_CERT TLS_KEY MODELS'
    expect(names).toEqual(expect.arrayContaining(contract.split(' ').map((name) => `ERRAND_${name}`)))
    expect(new Set(names).size).toBe(names.length)
  })

  test('a relative path is relative to where it was written', () => {
    mkdirSync(join(cwd, 'etc'))
    writeFileSync(join(cwd, 'etc/e.yaml'), 'dataDir: ./here\n')
    expect(readConfig({ env: {}, cwd, file: 'etc/e.yaml' }).dataDir).toBe(join(cwd, 'etc/here'))
    expect(readConfig({ env: { ERRAND_CONFIG: 'etc/e.yaml' }, cwd }).dataDir).toBe(join(cwd, 'etc/here'))
    expect(readConfig({ env: { ERRAND_DATA_DIR: 'there' }, cwd, file: 'etc/e.yaml' }).dataDir).toBe(join(cwd, 'there'))
    expect(readConfig({ env: { ERRAND_HOME: 'etc' }, cwd }).dataDir).toBe(join(cwd, 'etc/data'))
  })
})

describe('models', () => {
  test('keep the order of the file, and the first is the default where svc-3.5-flash is not among them', () => {
    const config = read({}, 'models: {b: {provider: openai, model: x}, a: {provider: demo}}')
    expect(Object.keys(config.models)).toEqual(['b', 'a'])
    expect(config.defaultModel).toBe('b')
    expect(config.models.a).toEqual({ provider: 'demo', model: 'demo' })
  })

  test('the example of the API contract is accepted unchanged', () => {
    const yaml =
      'models: {svc-3.5-flash: {provider: openai-compatible, baseUrl: "http://127.0.0.1:4010/v1", model: "fake", apiKeyEnv: "KEY", price: {input: 0.3, output: 2.5}}}'
    expect(read({}, yaml).models['svc-3.5-flash']).toEqual({
      provider: 'openai-compatible',
      baseUrl: 'http://127.0.0.1:4010/v1',
      model: 'fake',
      apiKeyEnv: 'KEY',
      price: { input: 0.3, output: 2.5 },
    })
  })

  test('a variable that a model names for its key is no typo', () => {
    const yaml = 'models: {a: {provider: openai, model: x, apiKeyEnv: ERRAND_MY_KEY}}'
    expect(problems({ ERRAND_MY_KEY: 'k' }, yaml)).toEqual([])
    expect(problems({ ERRAND_MY_KEY: 'k' }, 'models: {}')).toHaveLength(1)
  })
})

describe('problems', () => {
  test.each<[string, Record<string, string>, string, string[]]>([
    ['a misspelt setting', {}, 'prot: 1', ['There is no setting "prot". Did you mean port?']],
    [
      'a misspelt setting in a section',
      {},
      'limits: {runningPerProjct: 1}',
      ['Did you mean limits.runningPerProject?'],
    ],
    ['a misspelt variable', { ERRAND_PROT: '1' }, '', ['There is no setting ERRAND_PROT. Did you mean ERRAND_PORT?']],
    [
      'a port that is none',
      { ERRAND_PORT: '65536' },
      '',
      ['ERRAND_PORT is 65536; it must be a whole number from 0 to 65535.'],
    ],
    ['a port that is no number', { ERRAND_PORT: 'tcp://x' }, '', ['ERRAND_PORT is "tcp://x"; it must be']],
    ['a negative limit', {}, 'limits: {callsPerMinute: -1}', ['limits.callsPerMinute is -1; it must be']],
    ['a number with a part', {}, 'limits: {files: 1.5}', ['limits.files is 1.5; it must be a whole number']],
    ['a text for a number', {}, 'port: "8080"', ['port is "8080"; it must be a whole number']],
    ['a scalar for a section', {}, 'sandbox: docker', ['sandbox is "docker"; it must be a map']],
    ['a list for the file', {}, '[1]', ['it must be a map of settings']],
    ['a switch that is neither', { ERRAND_DEMO: 'maybe' }, '', ['ERRAND_DEMO is "maybe"; it must be on or off.']],
    ['a driver that is none', { ERRAND_SANDBOX: 'chroot' }, '', ['one of bubblewrap, docker.']],
    ['a driver that this version does not have', { ERRAND_SANDBOX: 'kubernetes' }, '', ['one of bubblewrap, docker.']],
    ['a driver that there never was', {}, 'sandbox: {driver: restricted}', ['one of bubblewrap, docker.']],
    ['min above max', {}, 'limits: {maxTurnDuration: {min: 9, max: 3}}', ['limits.maxTurnDuration.min is 9, above']],
    [
      'a default above max',
      {},
      'limits: {maxOutputTokens: {max: 10}}',
      ['limits.maxOutputTokens.default is 65536; it must be from'],
    ],
    [
      'a sandbox that may not have what it has',
      {},
      'sandbox: {pids: 50, max: {pids: 49}}',
      ['sandbox.max.pids is 49, below'],
    ],
    ['a default below min', {}, 'limits: {maxTurnDuration: {min: 900}}', ['limits.maxTurnDuration.default is 600']],
    ['half of TLS', { ERRAND_TLS_CERT: 'c' }, '', ['tls.key is missing']],
    ['every address without a public one', { ERRAND_HOST: '0.0.0.0' }, '', ['host is "0.0.0.0", every address of']],
    ['other machines without TLS', { ERRAND_HOST: '10.0.0.1' }, '', ['host is "10.0.0.1", which other machines can']],
    ['links in the clear', { ERRAND_PUBLIC_URL: 'http://e.example' }, '', ['beyond loopback it must be https']],
    [
      'a database of another kind',
      { ERRAND_DATABASE_URL: 'mysql://h/d' },
      '',
      ['it must be an address like postgres://'],
    ],
    [
      'a private range that is none',
      {},
      'egress: {allowPrivate: [10.0.0.0/99]}',
      ['egress.allowPrivate is ["10.0.0.0/99"]'],
    ],
    [
      'a field of another provider',
      {},
      'models: {a: {provider: openai, model: x, sendReasoning: true}}',
      ['models.a.sendReasoning is for the provider openai-compatible'],
    ],
    ['a model without provider', {}, 'models: {a: {model: x}}', ['models.a.provider must be one of']],
    [
      'a model without address',
      {},
      'models: {a: {provider: openai-compatible, model: x}}',
      ['models.a.baseUrl is missing'],
    ],
    [
      'wrong parameters, headers and body fields of a model, all at once',
      {},
      'models: {a: {provider: openai, model: x, reasoning: {effort: huge, budget: 1}, temperature: 3, verbosity: no, maxOutputTokens: 0, headers: {Host: x, Authorization: y, "a b": z}, headersEnv: {X-Key: not a name}, extraBody: {messages: [], stream: false, top_k: 5}}}',
      [
        'models.a.reasoning.effort must be one of none, low, medium, high, max',
        'models.a.reasoning',
        'models.a.temperature must be a number from 0 to 2',
        'models.a.verbosity must be one of low, medium, high',
        'models.a.maxOutputTokens must be at least 1',
        'models.a.headers.Host is a header that Errand sets',
        'models.a.headers.a b is no name of an HTTP header',
        'models.a.headersEnv.X-Key must be the name of an environment variable',
        'models.a.extraBody.messages is a field that Errand writes',
        'models.a.extraBody.stream is a field that Errand writes',
      ],
    ],
    [
      'a key in a header',
      {},
      'models: {a: {provider: openai, model: x, headers: {Authorization: Bearer x}}}',
      ['models.a.headers.Authorization holds a secret: put it into headersEnv'],
    ],
    [
      'a misspelt model setting',
      {},
      'models: {a: {provider: demo, modle: x}}',
      ['models.a has no setting "modle". Did you mean model?'],
    ],
    [
      'a negative price',
      {},
      'models: {a: {provider: demo, price: {input: -1, output: 1}}}',
      ['models.a.price.input must not be negative'],
    ],
    [
      'a default that no model has',
      {},
      'defaultModel: z\nmodels: {a: {provider: demo}}',
      ['it must be one of models: a.'],
    ],
    ['a file that is no YAML', {}, 'port: [', ['errand.yaml, line']],
    ['a file with a dangling alias', {}, 'port: *nowhere', ["errand.yaml can't be read"]],
    ['models that are no YAML', { ERRAND_MODELS: '{a: ' }, '', ["ERRAND_MODELS can't be read"]],
  ])('%s is reported', (_what, env, yaml, expected) => {
    const found = problems(env, yaml)
    expect(found).toHaveLength(expected.length)
    expected.forEach((text, i) => {
      expect(found[i]).toContain(text)
    })
  })

  test('all are reported at once', () => {
    const found = problems(
      { ERRAND_PORT: '-1', ERRAND_NOPE_NOPE: '1', ERRAND_LEASE_S: 'x' },
      'dataDri: x\nlimits: {files: -1, maxTurnDuration: {min: 9, max: 3}}',
    )
    expect(found).toHaveLength(6)
  })

  test('a secret is never repeated', () => {
    const told = problems({
      ERRAND_SECRET: 'hunter2',
      ERRAND_METRICS_KEY: 'hunter2',
      ERRAND_DATABASE_URL: 'x://u:hunter2@h',
    })
    expect(told).toHaveLength(3)
    expect(told.join()).not.toContain('hunter2')
    const key = problems({ ERRAND_MODELS: '{a: {provider: openai, model: x, apiKeyEnv: "sk-hunter2"}}' })
    expect(key).toHaveLength(1)
    expect(key.join()).not.toContain('hunter2')
  })

  test('a file that was asked for must be there', () => {
    expect(problems({ ERRAND_CONFIG: 'nowhere.yaml' })).toEqual([
      `The configuration file ${join(cwd, 'nowhere.yaml')} can't be read (ENOENT).`,
    ])
  })

  test('any environment and file give a Config or a ConfigError', () => {
    const name = fc.constantFrom(...SETTINGS.map((setting) => setting.env))
    fc.assert(
      fc.property(
        fc.dictionary(name, fc.string({ unit: 'grapheme' })),
        fc.string({ unit: 'grapheme' }),
        (env, yaml) => {
          problems(env, yaml)
        },
      ),
      { numRuns: 500 },
    )
  })
})

describe('where files are kept', () => {
  const at = (url: string) => read({ ERRAND_BLOBS_URL: url }).blobs

  test('is the data directory, another one, or a bucket', () => {
    expect(read().blobs).toEqual({ kind: 'disk', directory: join(cwd, 'data/blobs') })
    expect(at('file:///mnt/shared%20files/errand/')).toEqual({ kind: 'disk', directory: '/mnt/shared files/errand' })
    expect(at('s3://bucket')).toEqual({ kind: 's3', bucket: 'bucket', prefix: '', pathStyle: false })
    expect(at('s3://a.b-c/deep/er/?region=eu-central-1&endpoint=https://minio.internal:9000/')).toEqual({
      kind: 's3',
      bucket: 'a.b-c',
      prefix: 'deep/er',
      endpoint: 'https://minio.internal:9000',
      region: 'eu-central-1',
      pathStyle: true,
    })
    expect(at('s3://bucket?endpoint=https://store.example&pathStyle=false')).toMatchObject({ pathStyle: false })
  })

  test.each([
    ['file:///', 'file:///directory'],
    ['file://host/directory', 'file:///directory'],
    ['s3:///prefix', 'must name a bucket'],
    ['s3://B', 'must name a bucket'],
    ['s3://bucket/a//b', 'single slashes'],
    ['s3://bucket/a%20b', 'single slashes'],
    ['s3://bucket?Endpoint=https://x', 'no option "Endpoint"'],
    ['s3://bucket?endpoint=ftp://x', 'https or http'],
    ['s3://bucket?endpoint=https://x/path', 'without a path'],
    ['s3://AKIA:s3cret@bucket', 'must not hold credentials'],
    ['https://bucket.example', 'must be an address like'],
  ])('is never guessed: %s', (url, words) => {
    const said = problems({ ERRAND_BLOBS_URL: url })
    expect(said).toHaveLength(1)
    expect(said[0]).toContain(words)
    expect(said[0]).not.toContain('s3cret')
  })
})

describe('a setting that the chosen sandbox driver cannot use', () => {
  test('is refused with a sentence, though it is valid by itself', () => {
    const sentences = unsupported(read({ ERRAND_SANDBOX: 'docker', ERRAND_SANDBOX_ROOTFS: '/r' }))
    expect(sentences).toEqual(['sandbox.rootfs is for bubblewrap; with docker, name an image in sandbox.image.'])
    expect(unsupported(read())).toEqual([])
  })
})

describe('several nodes', () => {
  const DATABASE = { ERRAND_DATABASE_URL: 'postgres://h/d' }
  const SECRET = { ERRAND_SECRET: 's'.repeat(32) }

  test('need one secret on Postgres, and Postgres for any role but all; both are reported at once', () => {
    expect(problems(DATABASE)).toEqual([expect.stringContaining('secret is missing')])
    expect(problems({ ERRAND_ROLE: 'api' })).toEqual([expect.stringContaining('databaseUrl is missing')])
    expect(problems({ ERRAND_DATABASE_LISTEN_URL: 'postgres://h/d' })).toHaveLength(1)
    expect(problems({ ...DATABASE, ERRAND_ROLE: 'worker', ERRAND_PORT: 'x' })).toHaveLength(2)
    expect(read({ ...DATABASE, ...SECRET, ERRAND_ROLE: 'worker' })).toMatchObject({ role: 'worker', databasePool: 10 })
  })

  test('are warned where files would be found by one of them alone', () => {
    expect(warnings(read())).toEqual([])
    expect(warnings(read({ ...DATABASE, ...SECRET }))).toEqual([expect.stringContaining('set blobsUrl')])
    for (const url of ['s3://bucket', 'file:///mnt/shared']) {
      expect(warnings(read({ ...DATABASE, ...SECRET, ERRAND_BLOBS_URL: url }))).toEqual([])
    }
  })

  test('have no default skills directory, because it could differ between nodes', () => {
    expect(read().skillsDir).toBe(join(cwd, 'data/skills'))
    expect(read({ ...DATABASE, ...SECRET }).skillsDir).toBeUndefined()
    expect(read({ ...DATABASE, ...SECRET, ERRAND_SKILLS_DIR: '/skills' }).skillsDir).toBe('/skills')
  })
})

describe('the documents', () => {
  test('docs/configuration.md is what the table makes of it', () => {
    expect(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')).toBe(configReference())
  })

  test('errand.example.yaml is a good configuration with the defaults it claims', () => {
    const config = readConfig({ env: {}, cwd, file: join(ROOT, 'errand.example.yaml') })
    expect(Object.keys(config.models)).toEqual(['svc-3.5-flash', 'svc-3.1-pro'])
    expect(config.limits).toEqual(DEFAULT_LIMITS)
    expect(config.sandbox).toEqual(read().sandbox)
  })
})
