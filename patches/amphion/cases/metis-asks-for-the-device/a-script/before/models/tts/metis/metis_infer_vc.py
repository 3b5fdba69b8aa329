if __name__ == "__main__":
    device = "cuda:0"
    print(device)
