import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { useTexts } from '../texts.ts';
import { Icon } from './icon/icon.tsx';

/** What the control of a field needs. */
interface ControlProps {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean | undefined;
}

interface FieldProps {
  label: string;
  hint?: string;
  /** What is wrong with the value. */
  error?: string;
  /** Required is what a person expects; the rest is marked. */
  isOptional?: boolean;
  children: (control: ControlProps) => ComponentChildren;
}

/** A control with its label, what helps to fill it in, and what is wrong with its value. */
export function Field({ label, hint, error, isOptional = false, children }: FieldProps) {
  const { t } = useTexts();
  const id = useId();
  const description = `${id}-description`;
  const isDescribed = hint !== undefined || error !== undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {isOptional && <span class="optional"> ({t('app.optional')})</span>}
      {children({
        id,
        'aria-describedby': isDescribed ? description : undefined,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {isDescribed && (
        <div id={description}>
          {hint !== undefined && <p class="hint">{hint}</p>}
          {error !== undefined && (
            <p class="error">
              <Icon name="circle-x" />
              {error}
            </p>
          )}
        </div>
      )}
    </div>
  );
}

interface FileFieldProps {
  label: string;
  /** In a form. */
  name?: string;
  hint?: string;
  /** Types of files, as of the attribute. */
  accept: string;
  isRequired?: boolean;
  isDisabled?: boolean;
  onChoose?: (file: File | undefined) => void;
}

/** A field for a file: choose it, or drop it. The browser shows its name, and its size follows. */
export function FileField(props: FileFieldProps) {
  const { label, name, hint, accept, isRequired, isDisabled, onChoose } = props;
  const { size } = useTexts();
  const [file, setFile] = useState<File | undefined>();
  const chosen = file === undefined ? hint : size(file.size);
  return (
    <Field label={label} {...(chosen === undefined ? {} : { hint: chosen })}>
      {(control) => (
        <input
          {...control}
          class="input"
          type="file"
          name={name}
          accept={accept}
          required={isRequired}
          disabled={isDisabled}
          onChange={({ currentTarget: { files } }) => {
            setFile(files?.[0]);
            onChoose?.(files?.[0]);
          }}
        />
      )}
    </Field>
  );
}
