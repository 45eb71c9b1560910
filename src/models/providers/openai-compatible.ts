import type { ParameterSupport } from '../parameters.ts'
import { apiKeyMissing, readApiKey } from './api-key.ts'
import type { Provider } from './provider.ts'

/** Any server with OpenAI's chat completions API: hosted models, gateways, and local servers. */
export const openAiCompatible: Provider<'openai-compatible'> = {
  name: 'openai-compatible',
  requires: ['model', 'baseUrl'],
  takesSendReasoning: true,
  keyEnvs: [],
  localServers: [
    { name: 'Ollama', origin: 'http://127.0.0.1:11434' },
    { name: 'llama.cpp', origin: 'http://127.0.0.1:8080', ownedBy: 'llamacpp' },
    { name: 'LM Studio', origin: 'http://127.0.0.1:1234' },
    { name: 'vLLM', origin: 'http://127.0.0.1:8000', ownedBy: 'vllm' },
  ],
  errors: {
    overflowCodes: /exceed_context_size/i, // llama.cpp
    overflow: [
      /exceeds? (?:the )?(?:model'?s )?(?:available )?(?:maximum )?context (?:length|limit|size|window)/i, // llama.cpp, OpenAI
      /maximum context length/i, // OpenAI, vLLM, DeepSeek, OpenRouter
      /too many input tokens|messages is too long/i, // Perplexity
      /greater than the context length/i, // LM Studio
    ],
    overflowTokens: [
      /request \((?<prompt>\d{1,9}) tokens\) exceeds the available context size \((?<window>\d{1,9})/,
      /context length is (?<window>\d{1,9}) tokens\D{1,60}\d{1,9} output tokens and your prompt contains at least (?<prompt>\d{1,9})/,
      /context length is (?<window>\d{1,9}) tokens\D{1,60}(?<prompt>\d{1,9}) input tokens/,
      /context length is (?<window>\d{1,9}) tokens\D{1,60}\d{1,9} tokens \((?<prompt>\d{1,9}) (?:in|of)/,
      /length \(?(?<prompt>\d{1,9})\)? exceeds \D{1,60}(?<window>\d{1,9})/,
    ],
    // OpenAI, Groq, Mistral
    outputLimit: [/(?:at most|less than or equal to|must be <=?|maximum (?:value )?(?:is|of))\D{1,5}(\d+)/i],
  },
  open(config, { name, env, client }) {
    const { model, baseUrl, apiKeyEnv } = config
    const apiKey = readApiKey(env, apiKeyEnv)
    if (!baseUrl || !isHttpUrl(baseUrl)) return `The model ${name} needs a baseUrl (http://… or https://…).`
    if (apiKeyEnv && !apiKey) return apiKeyMissing(name, apiKeyEnv)
    const sendReasoning = config.sendReasoning ?? refusesLostReasoning(baseUrl, model)
    return async () => {
      const { createOpenAiCompatible } = await import('../openai-compatible.ts')
      const options = { ...client, name, model, baseUrl, apiKey, apiKeyEnv, sendReasoning, dialect: {} }
      return createOpenAiCompatible({ ...options, support: SUPPORT })
    }
  },
}

/** The parameters that most servers know. One that a server refuses is left out. */
const SUPPORT: ParameterSupport = { levels: ['none', 'low', 'medium', 'high'], maxTemperature: 2 }

function isHttpUrl(text: string): boolean {
  return /^https?:\/\//i.test(text) && URL.canParse(text)
}

/**
 * Whether the model refuses a tool result if the reasoning before the call is not sent back: DeepSeek's and Moonshot's
 * thinking models, at their own addresses and elsewhere.
 */
export function refusesLostReasoning(baseUrl: string, model: string): boolean {
  return (
    /deepseek|kimi/i.test(model) || /(?:^|\.)(?:deepseek\.com|moonshot\.(?:ai|cn))$/.test(new URL(baseUrl).hostname)
  )
}
