/** All model providers. To add one, write its record in a file of this folder and list it here. */
import { anthropic } from './anthropic.ts'
import { azure } from './azure.ts'
import { bedrock } from './bedrock.ts'
import { deepSeek } from './deepseek.ts'
import { demo } from './demo.ts'
import { google } from './google.ts'
import { groq } from './groq.ts'
import { mistral } from './mistral.ts'
import { openAi } from './openai.ts'
import { openAiCompatible } from './openai-compatible.ts'
import { openRouter } from './openrouter.ts'
import type { ErrorDialect, Provider } from './provider.ts'
import { xai } from './xai.ts'

/** If several keys are in the environment, the first provider with a key and `specModels` is used. */
const PROVIDERS = [
  openAiCompatible,
  anthropic,
  google,
  openAi,
  bedrock,
  azure,
  openRouter,
  mistral,
  xai,
  deepSeek,
  groq,
  demo,
] as const

export type ProviderName = (typeof PROVIDERS)[number]['name']

export const ALL_PROVIDERS: readonly Provider<ProviderName>[] = PROVIDERS
export const PROVIDER_NAMES: readonly ProviderName[] = PROVIDERS.map(({ name }) => name)
export const ERROR_DIALECTS: readonly ErrorDialect[] = ALL_PROVIDERS.flatMap(({ errors }) => errors ?? [])

/** Environment variables of keys that select a provider without any configuration. */
export const SELECTING_KEYS: readonly string[] = ALL_PROVIDERS.flatMap(
  ({ keyEnvs, specModels }) => (specModels && keyEnvs[0]) ?? [],
)

/** Undefined if there is no provider with this name. */
export function findProvider(name: string): Provider<ProviderName> | undefined {
  return ALL_PROVIDERS.find((provider) => provider.name === name)
}
