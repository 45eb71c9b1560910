/** Checks of settings that depend on each other. Each adds its problems to the list, a sentence each. */
import type { Config } from '../config.ts'
import { blobsLocation } from './blobs-url.ts'
import { isLoopback } from './loopback.ts'
import { checkNodes } from './nodes.ts'
import { SANDBOX_LIMITS } from './settings/sandbox.ts'
import type { Values } from './sources.ts'

/** A setting that was refused on its own is absent from `values` and adds no second problem. */
export function checkCombinations(values: Values, problems: string[]): void {
  checkRanges(values, problems)
  checkPairs(values, problems)
  checkAddress(values, problems)
  checkNodes(values, problems)
  try {
    blobsLocation(values)
  } catch (error) {
    problems.push(`blobsUrl ${(error as Error).message}.`)
  }
  checkModels(values, problems)
}

function checkRanges(values: Values, problems: string[]): void {
  for (const name of ['maxTurnDuration', 'maxOutputTokens', 'maxToolDuration']) {
    const bounds = ['min', 'default', 'max'].map((bound) => values.get(`limits.${name}.${bound}`) as number)
    const [min, normal, max] = bounds as [number, number, number]
    if (min > max) problems.push(`limits.${name}.min is ${min}, above limits.${name}.max, ${max}.`)
    else if (normal < min || normal > max) {
      problems.push(`limits.${name}.default is ${normal}; it must be from its min, ${min}, to its max, ${max}.`)
    }
  }
  for (const name of SANDBOX_LIMITS) {
    const normal = values.get(`sandbox.${name}`) as number
    const max = values.get(`sandbox.max.${name}`) as number | undefined
    if (max! < normal) problems.push(`sandbox.max.${name} is ${max}, below sandbox.${name}, ${normal}.`)
  }
}

/** Settings that need another one. */
function checkPairs(values: Values, problems: string[]): void {
  if (values.has('tls.cert') !== values.has('tls.key')) {
    problems.push(`tls.cert and tls.key go together; ${values.has('tls.cert') ? 'tls.key' : 'tls.cert'} is missing.`)
  }
  if (values.has('console.oidc.issuer') && !values.has('console.oidc.clientId')) {
    problems.push('console.oidc.issuer is set, and console.oidc.clientId is missing.')
  }
  if (values.get('search.provider') === 'searxng' && !values.has('search.baseUrl')) {
    problems.push('search.provider is "searxng", and search.baseUrl is missing: where SearXNG is.')
  }
}

function checkModels(values: Values, problems: string[]): void {
  const models = (values.get('models') ?? {}) as Config['models']
  const chosen = values.get('defaultModel') as string | undefined
  const names = Object.keys(models)
  if (chosen !== undefined && names.length > 0 && !names.includes(chosen) && !chosen.startsWith('svc-')) {
    problems.push(`defaultModel is ${JSON.stringify(chosen)}; it must be one of models: ${names.join(', ')}.`)
  }
  for (const [name, model] of Object.entries(models)) {
    for (const fallback of model.fallbacks ?? []) checkFallback(models, name, fallback, problems)
  }
}

function checkFallback(models: Config['models'], name: string, fallback: string, problems: string[]): void {
  const setting = `models.${name}.fallbacks`
  const other = models[fallback]
  if (fallback === name) problems.push(`${setting} names ${JSON.stringify(name)} itself.`)
  else if (!other) {
    problems.push(
      `${setting} names ${JSON.stringify(fallback)}; it must be one of models: ${Object.keys(models).join(', ')}.`,
    )
  } else if (models[name]!.price && !other.price) {
    problems.push(
      `${setting} names ${JSON.stringify(fallback)}, which has no price while ${name} has one: policy.maxCost could not hold. Give it a price.`,
    )
  }
}

/** Plain HTTP is allowed on loopback only, so that keys and files never leave this machine unencrypted. */
function checkAddress(values: Values, problems: string[]): void {
  const publicUrl = values.get('publicUrl') as string | undefined
  if (publicUrl?.startsWith('http:') && !isLoopback(new URL(publicUrl).hostname)) {
    problems.push(`publicUrl is ${JSON.stringify(publicUrl)}; beyond loopback it must be https.`)
  }
  const host = values.get('host') as string | undefined
  if (host !== undefined && ['0.0.0.0', '::'].includes(host) && publicUrl === undefined) {
    problems.push(
      `host is ${JSON.stringify(host)}, every address of this machine: set publicUrl to the https address at which ` +
        'callers reach it (a proxy’s, or its own with tls.cert and tls.key), or take 127.0.0.1.',
    )
  } else if (host !== undefined && !isLoopback(host) && publicUrl === undefined && !values.has('tls.cert')) {
    problems.push(
      `host is ${JSON.stringify(host)}, which other machines can reach, and there is no TLS: set tls.cert and tls.key, ` +
        'or publicUrl to the https address of the proxy before this server, or take 127.0.0.1.',
    )
  }
}
