/** Recognizes a refusal that says the prompt does not fit the model's context window, in the words of many providers. */
import type { ProviderError } from './failures.ts'

/** Tokens, where the provider reports them. */
export interface Overflow {
  readonly prompt?: number
  readonly window?: number
}

const CODES = /context_length_exceeded|exceed_context_size/i

const WORDS = [
  /prompt (?:is )?too long/i, // Anthropic
  /exceeds? (?:the )?(?:model'?s )?(?:available )?(?:maximum )?context (?:length|limit|size|window)/i, // llama.cpp, OpenAI
  /maximum context length/i, // OpenAI, vLLM, DeepSeek, OpenRouter
  /maximum (?:allowed )?(?:input|prompt) length/i, // xAI
  /token count.{0,40}(?:exceeds|supports up to)/i, // Google
  /input is too long|too many input tokens|messages is too long/i, // Bedrock, Perplexity
  /too large for model|greater than the context length/i, // Mistral, LM Studio
  /reduce the length of the (?:input|messages|prompt)/i, // Groq
]

const NUMBERS = [
  /(?<prompt>\d{1,9}) tokens > (?<window>\d{1,9})/,
  /context limit: (?<prompt>\d{1,9}) \+ \d{1,9} > (?<window>\d{1,9})/,
  /request \((?<prompt>\d{1,9}) tokens\) exceeds the available context size \((?<window>\d{1,9})/,
  /context length is (?<window>\d{1,9}) tokens\D{1,60}\d{1,9} output tokens and your prompt contains at least (?<prompt>\d{1,9})/,
  /context length is (?<window>\d{1,9}) tokens\D{1,60}(?<prompt>\d{1,9}) input tokens/,
  /context length is (?<window>\d{1,9}) tokens\D{1,60}\d{1,9} tokens \((?<prompt>\d{1,9}) (?:in|of)/,
  /token count (?:is )?\(?(?<prompt>\d{1,9})\)?\D{1,60}(?<window>\d{1,9})/,
  /prompt length is (?<window>\d{1,9})\D{1,60}(?<prompt>\d{1,9}) tokens/,
  /length \(?(?<prompt>\d{1,9})\)? exceeds \D{1,60}(?<window>\d{1,9})/,
  /contains (?<prompt>\d{1,9}) tokens\D{1,60} \d{1,9} draft tokens\D{1,60}(?<window>\d{1,9})/,
  /context (?:length|size|window)\D{1,20}(?<window>\d{1,9})/,
]

/** Longer messages quote the request, which anybody may have written. */
const MAX_CHARACTERS = 1_000

/** Undefined if the refusal is about something else. */
export function readOverflow({ message = '', code = '' }: ProviderError): Overflow | undefined {
  const text = message.slice(0, MAX_CHARACTERS)
  if (!CODES.test(code) && !WORDS.some((words) => words.test(text))) return undefined
  const plain = text.replace(/(\d),(?=\d{3})/g, '$1')
  const { prompt, window } = NUMBERS.map((numbers) => numbers.exec(plain)?.groups).find(Boolean) ?? {}
  return { ...(prompt && { prompt: Number(prompt) }), ...(window && { window: Number(window) }) }
}
