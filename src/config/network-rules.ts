/** Schema of the operator's network rules for a sandbox: disabled, public, or a list of hosts. */
import * as z from 'zod'
import { readHostRule } from '../domain/network.ts'

const hostRule = z.string().transform((text, context) => {
  const read = readHostRule(text)
  if (typeof read !== 'string') return read.rule
  context.addIssue({ code: 'custom', message: `has ${JSON.stringify(text)}, which ${read}` })
  return z.NEVER
})

export const networkRules = z.union([
  z.enum(['disabled', 'public']),
  z.array(hostRule).transform((allow) => ({ allow })),
])
