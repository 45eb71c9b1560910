/** Fields for the parameters of model calls. An empty field is the model's default. */
import { Field, Input, Select } from '../ui/field.tsx'
import { EFFORTS, type Parameters, parametersOf, VERBOSITIES } from './parameters.ts'

interface ParameterFieldsProps {
  readonly value: Parameters
  readonly onChange: (value: Parameters) => void
}

export function ParameterFields({ value, onChange }: ParameterFieldsProps) {
  const set = (changes: { readonly [Name in keyof Parameters]: Parameters[Name] | undefined }) =>
    onChange(parametersOf({ ...value, ...changes } as Parameters))
  return (
    <div className="grid grid-cols-2 gap-3">
      <Choice
        label="Reasoning effort"
        options={EFFORTS}
        value={value.reasoning?.effort}
        onChange={(effort) => set({ reasoning: effort && { effort } })}
      />
      <Choice
        label="Verbosity"
        options={VERBOSITIES}
        value={value.verbosity}
        onChange={(verbosity) => set({ verbosity })}
      />
      <Field label="Temperature" hint="from 0 to 2">
        {(control) => (
          <Input
            {...control}
            type="number"
            inputMode="decimal"
            min={0}
            max={2}
            step="any"
            placeholder="Default"
            value={value.temperature ?? ''}
            onChange={({ target }) => set({ temperature: target.value === '' ? undefined : Number(target.value) })}
          />
        )}
      </Field>
    </div>
  )
}

interface ChoiceProps<Value extends string> {
  readonly label: string
  readonly options: readonly Value[]
  readonly value: Value | undefined
  readonly onChange: (value: Value | undefined) => void
}

function Choice<Value extends string>({ label, options, value, onChange }: ChoiceProps<Value>) {
  return (
    <Field label={label}>
      {(control) => (
        <Select
          {...control}
          value={value ?? ''}
          onChange={({ target }) => onChange(options.find((option) => option === target.value))}
        >
          <option value="">Default</option>
          {options.map((option) => (
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </Select>
      )}
    </Field>
  )
}
