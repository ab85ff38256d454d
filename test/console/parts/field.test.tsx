import { expect, it } from 'vitest';
import { Field, FileField } from '../../../src/console/parts/field.tsx';
import { person, render, screen } from '../dom/render.tsx';

const described = (control: HTMLElement) =>
  document.getElementById(control.getAttribute('aria-describedby') ?? '')?.textContent;

it('has a name, and is described by its hint and what is wrong with its value', async () => {
  const replace = await render(<Field label="Name">{(control) => <input {...control} />}</Field>);
  const input = screen.getByRole('textbox', { name: 'Name' });
  expect(input.hasAttribute('aria-describedby')).toBe(false);
  await replace(
    <Field label="Name" hint="As customers see it." error="It is too long." isOptional>
      {(control) => <input {...control} />}
    </Field>,
  );
  expect(described(input)).toBe('As customers see it.It is too long.');
  expect(input.getAttribute('aria-invalid')).toBe('true');
  expect(screen.getByText('(optional)')).toBeDefined();
});

it('shows the size of the file that was chosen in place of the hint', async () => {
  await render(<FileField label="List" hint="CSV" accept=".csv" />);
  const input = screen.getByLabelText('List');
  expect(described(input)).toBe('CSV');
  await person().upload(input, new File(['x'.repeat(2048)], 'people.csv', { type: 'text/csv' }));
  expect(described(input)).toMatch(/^2/);
});
