/** Texts in which the demo model says what it is and what it can do. */
import { listed } from './numbers.ts'

export const WHO = "I am Errand's built-in demo model: rules, not a language model."

const HOW_TO_CONFIGURE =
  'For an agent that understands any instruction, configure a real model: an entry under `models:` in errand.yaml (any OpenAI-compatible server, Anthropic, Google, OpenAI or Bedrock), a known key in the environment such as ANTHROPIC_API_KEY, or a local model server (Ollama, llama.cpp, LM Studio, vLLM) on this machine.'

export function helpText(files: readonly string[], tools: ReadonlySet<string>): string {
  const table = files.find((name) => /\.(csv|tsv)$/i.test(name)) ?? 'sales.csv'
  const log = files.find((name) => /\.log$/i.test(name)) ?? 'access.log'
  const web = tools.has('web_search') ? '\n- the web: "Search the web for sea otters"' : ''
  return `${WHO} I have no intelligence and did not understand that. What I can do, with real code in the real sandbox:

- statistics of a table: "What is the average price by city in ${table}?"
- what stands out: "Which month has the highest total in ${table}?"
- a chart: "Plot the mean price by month in ${table}"
- counting in the access log of a web server: "What are the top 5 IPs in ${log}?"
- arithmetic: "What is 17 * 23 + 4?"
- sequences: "Compute the first 10 Fibonacci numbers"
- running code: put a fenced block of python, bash or js into the instruction
- writing a file: "Create a file hello.txt with the content 'Hello'"
- files: "What files are there?"${web}

${HOW_TO_CONFIGURE}`
}

export function missingFileText(name: string, attached: readonly string[]): string {
  const there = attached.length === 0 ? 'No file is attached' : `Attached: ${listed(attached)}`
  return `There is no file ${name} here. ${there}. Send it in the request's \`files\`: {"name": "${name}", "content": "…"}.`
}

export function whichFileText(attached: readonly string[]): string {
  return `Several files are attached: ${listed(attached)}. Name the one you mean in the instruction.`
}

export function needsWordsText(path: string): string {
  const example = `Create a file ${path.replace(/^outputs\//, '')} with the content '…'`
  return `${WHO} I can't make up that text. Give me the words, and I write them: "${example}".\n\n${HOW_TO_CONFIGURE}`
}
