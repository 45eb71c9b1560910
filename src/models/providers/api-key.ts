import type { Env } from './provider.ts'

/** Reads a key from the environment. Blank counts as not set. */
export function readApiKey(env: Env, apiKeyEnv: string | undefined): string | undefined {
  return (apiKeyEnv && env[apiKeyEnv]?.trim()) || undefined
}

export function apiKeyMissing(model: string, variable: string | undefined): string {
  return `The environment variable ${variable} is not set. It must hold the key for the model ${model}.`
}
