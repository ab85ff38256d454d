import { RowActions } from '../parts.tsx';

interface DeletionMenuProps {
  /** Of what can be deleted. */
  name: string;
  label: string;
  question: string;
  remove: () => Promise<void>;
}

/** The menu of a page whose subject can be deleted; it asks first. */
export function DeletionMenu({ name, label, question, remove }: DeletionMenuProps) {
  return <RowActions label={name} actions={[{ label, question, isDanger: true, action: remove }]} />;
}
