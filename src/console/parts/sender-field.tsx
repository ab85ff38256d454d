import { useTexts } from '../texts.ts';
import { Field } from './field.tsx';

interface SenderFieldProps {
  /** The sender that is proposed or stored. */
  value: string;
  hint?: string;
  isReadOnly?: boolean;
}

/** The sender of a mail, in a form: an address, or a name with it. */
export function SenderField({ value, hint, isReadOnly = false }: SenderFieldProps) {
  const { t } = useTexts();
  return (
    <Field label={t('messages.sender')} {...(hint === undefined ? {} : { hint })}>
      {(control) => (
        <input
          {...control}
          class="input"
          name="from"
          required
          maxLength={500}
          autocomplete="off"
          autocapitalize="none"
          defaultValue={value}
          readOnly={isReadOnly}
        />
      )}
    </Field>
  );
}
