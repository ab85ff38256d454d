import './tabs.css';

interface Tab {
  name: string;
  address: string;
  isCurrent: boolean;
}

/** The views of one thing, each with an address. `label`: of the navigation, for screen readers. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, address, isCurrent }) => (
        <a class="tab" key={name} href={address} aria-current={isCurrent ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}
