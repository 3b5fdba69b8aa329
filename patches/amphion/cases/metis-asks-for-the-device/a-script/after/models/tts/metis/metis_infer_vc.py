if __name__ == "__main__":
    device = compute_device.chosen(with_directml=False)
    print(device)
