import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { useTexts } from '../../texts.ts';
import { Field } from '../field.tsx';
import { Icon } from '../icon/icon.tsx';
import type { IconName } from '../icon/icon-names.ts';
import { useEditing } from './editing.ts';

const COLOR = /^#[0-9A-Fa-f]{6}$/;

interface ColorFieldProps {
  label: string;
  value: string | undefined;
  /** The color without a value; absent: there is always one. */
  standard?: string;
  onChange: (value: string | undefined) => void;
}

/** A color, which can be chosen or entered; and the standard one where there is one. */
export function ColorField({ label, value, standard, onChange }: ColorFieldProps) {
  const { t } = useTexts();
  const { isReadOnly } = useEditing();
  const id = useId();
  const shown = value ?? standard ?? '#ffffff';
  return (
    <div class="field color-field">
      <label for={id}>{label}</label>
      <div class="color-row">
        <input
          class="color-well"
          type="color"
          aria-label={t('blocks.color.choose', { label })}
          disabled={isReadOnly}
          value={shown}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
        <input
          class="input"
          id={id}
          maxLength={7}
          autocomplete="off"
          spellcheck={false}
          readOnly={isReadOnly}
          placeholder={standard === undefined ? '' : t('blocks.color.standard')}
          value={value ?? ''}
          onInput={({ currentTarget: field }) => {
            const entered = field.value.trim();
            const color = entered.startsWith('#') ? entered : `#${entered}`;
            if (COLOR.test(color)) onChange(color.toLowerCase());
            else if (entered === '' && standard !== undefined) onChange(undefined);
          }}
          onBlur={({ currentTarget: field }) => {
            // What is not a color is not used.
            field.value = value ?? '';
          }}
        />
        {standard !== undefined && value !== undefined && !isReadOnly && (
          <button
            type="button"
            class="button ghost icon-only small"
            aria-label={t('blocks.color.reset', { label })}
            title={t('blocks.color.reset', { label })}
            onClick={() => onChange(undefined)}
          >
            <Icon name="x" />
          </button>
        )}
      </div>
    </div>
  );
}

interface NumberFieldProps {
  label: string;
  value: number;
  min: number;
  max: number;
  onChange: (value: number) => void;
}

/** A number of pixels. */
export function NumberField({ label, value, min, max, onChange }: NumberFieldProps) {
  const { isReadOnly } = useEditing();
  return (
    <Field label={label}>
      {(control) => (
        <span class="unit-field">
          <input
            {...control}
            class="input"
            type="number"
            inputMode="numeric"
            min={min}
            max={max}
            readOnly={isReadOnly}
            value={value}
            onInput={({ currentTarget: { valueAsNumber } }) => {
              if (Number.isInteger(valueAsNumber) && valueAsNumber >= min && valueAsNumber <= max)
                onChange(valueAsNumber);
            }}
            onBlur={({ currentTarget: field }) => {
              field.value = String(value);
            }}
          />
          <span aria-hidden="true">px</span>
        </span>
      )}
    </Field>
  );
}

interface ChoiceProps<T extends string | number> {
  label: string;
  options: readonly { value: T; text: string; icon?: IconName }[];
  value: T;
  onChange: (value: T) => void;
}

/** A choice of a few values, next to each other. */
export function Choice<T extends string | number>({ label, options, value, onChange }: ChoiceProps<T>) {
  const { isReadOnly } = useEditing();
  const name = useId();
  return (
    <fieldset class="field choice-field" disabled={isReadOnly}>
      <legend>{label}</legend>
      <div class="segments">
        {options.map(({ value: each, text, icon }) => (
          <label class="segment" key={each} title={icon === undefined ? undefined : text}>
            <input
              class="segment-input"
              type="radio"
              name={name}
              aria-label={text}
              checked={each === value}
              onChange={() => onChange(each)}
            />
            {icon === undefined ? text : <Icon name={icon} />}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

type Align = 'left' | 'center' | 'right';

export function AlignField({
  value,
  onChange,
}: {
  value: Align | undefined;
  onChange: (value: Align) => void;
}) {
  const { t } = useTexts();
  return (
    <Choice
      label={t('blocks.align')}
      value={value ?? 'left'}
      options={[
        { value: 'left', text: t('blocks.align.left'), icon: 'text-align-start' },
        { value: 'center', text: t('blocks.align.center'), icon: 'text-align-center' },
        { value: 'right', text: t('blocks.align.right'), icon: 'text-align-end' },
      ]}
      onChange={onChange}
    />
  );
}

interface TickProps {
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}

export function Tick({ label, isOn, onChange }: TickProps) {
  const { isReadOnly } = useEditing();
  return (
    <label class="check">
      <input
        class="tick"
        type="checkbox"
        disabled={isReadOnly}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) => onChange(checked)}
      />
      {label}
    </label>
  );
}

/** Two fields next to each other. */
export function Pair({ children }: { children: ComponentChildren }) {
  return <div class="field-pair">{children}</div>;
}
