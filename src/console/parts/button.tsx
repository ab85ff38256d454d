import type { ButtonHTMLAttributes } from 'preact';
import { Icon } from './icon/icon.tsx';
import type { IconName } from './icon/icon-names.ts';

interface ButtonProps {
  label: string;
  /** Primary: at most one of a view. Ghost: in menus and heads. Danger: removes something. */
  kind?: 'primary' | 'secondary' | 'ghost' | 'danger';
  icon?: IconName;
  /** Only the icon is shown. */
  isIconOnly?: boolean;
  /** Whether its action runs: it keeps its width and cannot be pressed again. */
  isBusy?: boolean;
  isDisabled?: boolean;
  type?: 'button' | 'submit';
  /** The id of the form that it submits, if it is outside of it. */
  form?: string;
  onClick?: ButtonHTMLAttributes['onClick'];
}

/** A button with a text or an icon or both. */
export function Button(props: ButtonProps) {
  const { label, kind = 'secondary', icon, isIconOnly = false, isBusy = false, type = 'button' } = props;
  return (
    <button
      type={type}
      form={props.form}
      class={`button ${kind}${isIconOnly ? ' icon-only' : ''}`}
      disabled={props.isDisabled === true || isBusy}
      aria-busy={isBusy}
      aria-label={isIconOnly ? label : undefined}
      title={isIconOnly ? label : undefined}
      onClick={props.onClick}
    >
      {icon !== undefined && <Icon name={icon} />}
      {!isIconOnly && label}
    </button>
  );
}
